"""The store of RayClusters: newest news win, by resourceVersion, whoever brings them."""

from __future__ import annotations

import pytest

from tpu_operator.controller.clusters import Clusters, Key

KEY = Key("team-a", "demo")


def raw(version: int, uid: str = "u1", replicas: int = 1, **metadata: object) -> dict:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": "demo",
            "namespace": "team-a",
            "uid": uid,
            "resourceVersion": str(version),
            "generation": replicas,
            **metadata,
        },
        "spec": {
            "headGroupSpec": {"template": {}},
            "workerGroupSpecs": [{"groupName": "g", "replicas": replicas, "template": {}}],
        },
    }


def replicas(clusters: Clusters) -> int | None:
    cluster = clusters.get(KEY)
    assert cluster is not None
    return cluster.spec.worker_group_specs[0].replicas


def test_the_first_news_of_a_cluster_wake_its_key() -> None:
    clusters = Clusters()
    assert clusters.put(raw(1)) == KEY
    assert replicas(clusters) == 1


def test_old_news_are_ignored() -> None:
    clusters = Clusters()
    clusters.put(raw(5, replicas=3))
    assert clusters.put(raw(4, replicas=1)) is None
    assert replicas(clusters) == 3


def test_another_object_of_the_same_name_takes_its_place() -> None:
    clusters = Clusters()
    clusters.put(raw(5))
    assert clusters.put(raw(6, uid="u2", replicas=2)) == KEY
    assert replicas(clusters) == 2


def test_a_change_of_the_status_alone_wakes_nobody() -> None:
    clusters = Clusters()
    clusters.put(raw(1))
    assert clusters.put({**raw(2), "status": {"state": "ready"}}) is None
    cluster = clusters.get(KEY)
    assert cluster is not None
    assert cluster.status.state == "ready"


def test_annotations_and_deletion_wake() -> None:
    clusters = Clusters()
    clusters.put(raw(1))
    assert clusters.put(raw(2, annotations={"a": "b"})) == KEY
    assert clusters.put(raw(3, annotations={"a": "b"}, deletionTimestamp="2026-01-01T00:00:00Z")) == KEY


def test_a_deletion_of_the_predecessor_does_not_remove_the_successor() -> None:
    clusters = Clusters()
    clusters.put(raw(7, uid="u2"))
    assert clusters.remove(raw(6, uid="u1")) is None
    assert clusters.get(KEY) is not None
    assert clusters.remove(raw(8, uid="u2")) == KEY
    assert clusters.get(KEY) is None


def test_a_list_tells_what_was_added_changed_and_removed_unnoticed() -> None:
    clusters = Clusters()
    clusters.put(raw(1))
    other = raw(2, uid="u9")
    other["metadata"]["name"] = "other"
    assert clusters.replace([other], None, 10) == [Key("team-a", "other"), KEY]
    assert list(clusters) == [Key("team-a", "other")]


@pytest.mark.parametrize(("namespace", "version"), [("team-b", 10), (None, 0)])
def test_a_list_says_nothing_of_other_namespaces_and_of_what_is_newer(namespace: str | None, version: int) -> None:
    clusters = Clusters()
    clusters.put(raw(1))
    assert clusters.replace([], namespace, version) == []
    assert clusters.get(KEY) is not None


def test_an_own_status_write_is_seen_at_once_and_not_taken_back_by_late_news() -> None:
    clusters = Clusters()
    clusters.put(raw(5))
    clusters.written(KEY, "u1", {"state": "ready"}, 6)
    clusters.put(raw(5))
    cluster = clusters.get(KEY)
    assert cluster is not None
    assert (cluster.status.state, cluster.metadata.resource_version) == ("ready", "6")


def test_an_own_status_write_to_a_predecessor_is_dropped() -> None:
    clusters = Clusters()
    clusters.put(raw(5, uid="u2"))
    clusters.written(KEY, "u1", {"state": "ready"}, 9)
    cluster = clusters.get(KEY)
    assert cluster is not None
    assert cluster.status.state == ""


@pytest.mark.parametrize(
    "later",
    [raw(2, replicas=2), raw(2, uid="u2"), raw(2, deletionTimestamp="2026-01-01T00:00:00Z")],
    ids=["new generation", "another object", "deleted"],
)
def test_a_plan_is_out_of_date_once_spec_object_or_life_has_changed(later: dict) -> None:
    clusters = Clusters()
    clusters.put(raw(1))
    cluster = clusters.get(KEY)
    assert cluster is not None
    assert clusters.is_current(cluster)
    clusters.put(later)
    assert not clusters.is_current(cluster)
