"""One file for each thing that is tried. A scenario gets a stage and yields measurements as they come."""

from bench.scenarios.clusters import many_clusters
from bench.scenarios.creating import create, create_behind_webhook
from bench.scenarios.deleting import delete_slices
from bench.scenarios.fairness import small_beside_big
from bench.scenarios.repair import host_deleted, host_failed
from bench.scenarios.scenario import Scenario
from bench.scenarios.steady import ready_idle_restart, restart_huge

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(create, ("create", "create-writes"), 180),
    Scenario(create_behind_webhook, ("create-webhook",), 240),
    Scenario(small_beside_big, ("fair-max", "fair-median"), 180),
    Scenario(delete_slices, ("delete",), 180),
    Scenario(host_failed, ("failed",), 120),
    Scenario(host_deleted, ("deleted-mates", "deleted-whole"), 180),
    Scenario(many_clusters, ("clusters", "clusters-events"), 180),
    Scenario(ready_idle_restart, ("ready-memory", "ready-cpu", "idle-cpu", "idle-writes", "restart"), 300),
    Scenario(restart_huge, ("restart-10000",), 600, full=True),
)

__all__ = ["SCENARIOS", "Scenario"]
