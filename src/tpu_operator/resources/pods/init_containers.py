"""The init container by which a worker waits for the GCS, so that its own container does not start and fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.resources.pods.command import bash
from tpu_operator.resources.tree import entries, own_copy, text_list

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.resources.pods.draft import Draft, RayNode

WAIT_FOR_GCS: Final = "wait-gcs-ready"

# The same image, rights and access as the Ray container has. envFrom too, or TLS settings in it would be missing
# (quirk 71).
_LIKE_RAY: Final = ("image", "imagePullPolicy", "securityContext", "env", "envFrom", "volumeMounts")

# `ray health-check` takes seconds to start, so bash knocks at the port first, and at most for 15 s, because the port may
# be reachable in a way that bash cannot see.
_SCRIPT: Final = """\
SECONDS=0
knock() {{ (exec 3<>/dev/tcp/{host}/{port}) 2>/dev/null; }}
while true; do
  for try in {{1..30}}; do
    if knock; then break; fi
    sleep 0.5
  done
  if [ "$SECONDS" -lt 120 ]; then
    ray health-check --address {host}:{port} >/dev/null 2>&1 && break
  else
    echo "the head's GCS has not answered for $SECONDS seconds; is the head pod running, does its service resolve?"
    ray health-check --address {host}:{port} && break
  fi
  sleep 1
done
echo "the head's GCS is ready"
"""


def wait_for_gcs(node: RayNode, draft: Draft) -> None:
    """Add the container, as the last one, unless the administrator wants none."""
    if not node.config.init_container_injection:
        return
    size: JsonObject = {"cpu": "200m", "memory": "256Mi"}
    like_ray = own_copy({field: draft.ray[field] for field in _LIKE_RAY if draft.ray.get(field)})
    container: JsonObject = {
        **like_ray,
        "name": WAIT_FOR_GCS,
        "command": text_list(bash(node.config)),
        "args": [_SCRIPT.format(host=node.head_fqdn, port=node.head_port)],
        "resources": {"limits": size, "requests": size},
    }
    entries(draft.spec, "initContainers").append(container)
