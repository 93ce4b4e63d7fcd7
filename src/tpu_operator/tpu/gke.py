"""Names that GKE gives to TPU nodes, and by which pods ask for them (GKE pages on TPUs)."""

from __future__ import annotations

from typing import Final

RESOURCE: Final = "google.com/tpu"
ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
NODE_POOL: Final = "cloud.google.com/gke-nodepool"
SLICE_TOPOLOGY: Final = "cloud.google.com/gke-tpu-slice-topology"
"""Annotation of a pod on a part of a pool, or on several pools: the topology of its slice, in place of the pool's."""
