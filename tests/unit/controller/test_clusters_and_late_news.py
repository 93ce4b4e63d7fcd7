"""News about RayClusters that come late, twice, or after an own write."""

from __future__ import annotations

from typing import Any

from tpu_operator.controller.clusters import Clusters, Key

KEY = Key("team", "demo")


def doc(version: int, *, uid: str = "one", replicas: int = 1, status: str = "") -> dict[str, Any]:
    metadata = {
        "namespace": "team",
        "name": "demo",
        "uid": uid,
        "resourceVersion": str(version),
        "generation": replicas,
    }
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": {"state": status}}


def test_an_edit_just_before_an_own_status_write_is_not_lost() -> None:
    clusters = Clusters()
    clusters.put(doc(10))
    clusters.written(KEY, "one", {"state": "ready"}, 12)
    assert clusters.put(doc(11, replicas=2)) is None  # older than what is known of the status
    assert clusters.put(doc(12, replicas=2, status="ready")) == KEY


def test_the_event_of_an_own_status_write_wakes_nobody() -> None:
    clusters = Clusters()
    clusters.put(doc(10))
    clusters.written(KEY, "one", {"state": "ready"}, 11)
    assert clusters.put(doc(11, status="ready")) is None
    assert clusters.put(doc(11, status="ready")) is None


def test_a_deleted_object_does_not_come_back_when_old_events_are_replayed() -> None:
    clusters = Clusters()
    clusters.put(doc(10))
    assert clusters.remove(doc(11)) == KEY
    assert clusters.put(doc(10)) is None
    assert len(clusters) == 0


def test_an_object_that_a_list_missed_does_not_come_back() -> None:
    clusters = Clusters()
    clusters.put(doc(10))
    assert clusters.replace([], "team", 20) == [KEY]
    assert clusters.put(doc(10)) is None
    assert clusters.put(doc(15, uid="never-heard-of")) is None
    assert clusters.put(doc(21, uid="two")) == KEY


def test_news_of_the_object_before_do_not_replace_the_new_one_of_its_name() -> None:
    clusters = Clusters()
    clusters.put(doc(20, uid="two"))
    assert clusters.put(doc(15, uid="one")) is None
    assert clusters.remove(doc(16, uid="one")) is None
    assert clusters.put(doc(21, uid="two", replicas=3)) == KEY
