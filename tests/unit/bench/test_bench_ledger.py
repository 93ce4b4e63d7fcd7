from bench.ledger import Metadata, PartialObject, PodEvent, PodLedger


def event(kind, uid, *, cluster="big", slice_="s0", head=False, deleting=False):
    labels = {"ray.io/cluster": cluster, "ray.io/node-type": "head" if head else "worker"}
    labels |= {} if head else {"ray.io/worker-group-replica-name": slice_}
    stamp = "2026-01-01T00:00:00Z" if deleting else None
    return PodEvent(kind, PartialObject(Metadata(name=f"pod-{uid}", uid=uid, labels=labels, deletionTimestamp=stamp)))


def ledger(*events):
    built = PodLedger()
    for at, one in enumerate(events):
        built.see(one, float(at))
    return built


def test_a_pod_lives_from_its_first_event_until_it_is_being_deleted():
    seen = ledger(event("ADDED", "a"), event("MODIFIED", "a"), event("ADDED", "b"))
    assert seen.count("big") == 2
    seen.see(event("MODIFIED", "a", deleting=True), 7.0)
    assert (seen.count("big"), seen.lost, seen.present) == (1, {"a": 7.0}, {"a", "b"})


def test_the_first_sign_of_a_loss_counts():
    seen = ledger(event("ADDED", "a"), event("MODIFIED", "a", deleting=True), event("DELETED", "a", deleting=True))
    assert (seen.lost, seen.present) == ({"a": 1.0}, set())


def test_clusters_are_kept_apart():
    seen = ledger(event("ADDED", "a"), event("ADDED", "b", cluster="small"), event("ADDED", "c", cluster="small"))
    assert (seen.count("big"), seen.count("small"), seen.first) == (1, 2, {"big": 0.0, "small": 1.0})


def test_pods_of_the_bare_client_are_counted_under_their_own_label():
    meta = Metadata(name="f", uid="f", labels={"bar.io/cluster": "before"})
    assert ledger(PodEvent("ADDED", PartialObject(meta))).count("before") == 1


def test_a_slice_is_whole_with_all_its_hosts_and_none_broken():
    seen = ledger(
        *(event("ADDED", f"{s}{h}", slice_=s) for s in "ab" for h in range(4)), event("ADDED", "h", head=True)
    )
    assert seen.whole("big", 4) == 2
    assert seen.whole("big", 4, {"a1"}) == 1
    seen.see(event("MODIFIED", "b2", slice_="b", deleting=True), 9.0)
    assert seen.whole("big", 4) == 1


def test_a_slice_with_a_host_too_many_is_not_whole():
    assert ledger(*(event("ADDED", f"{n}") for n in range(5))).whole("big", 4) == 0


def test_the_head_is_no_worker():
    assert [pod.uid for pod in ledger(event("ADDED", "h", head=True), event("ADDED", "w")).workers("big")] == ["w"]


def test_bookmarks_and_errors_change_nothing():
    seen = ledger(PodEvent("BOOKMARK", PartialObject(Metadata(uid="x"))), PodEvent("ERROR", PartialObject()))
    assert not seen.present


def test_all_lost_is_about_the_named_pods_only():
    seen = ledger(event("ADDED", "a"), event("ADDED", "b"), event("DELETED", "a"))
    assert seen.all_lost(["a"])
    assert not seen.all_lost(["a", "b"])
