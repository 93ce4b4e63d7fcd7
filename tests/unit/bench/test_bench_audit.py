import json

from bench.audit import AuditLog, Write, pods_created, summary, total, writes


def line(verb="create", resource="pods", user="operator", *, stage="ResponseComplete", second=0, code=201, **target):
    entry = {
        "stage": stage,
        "verb": verb,
        "user": {"username": user},
        "objectRef": {"resource": resource, **target},
        "responseStatus": {"code": code},
        "stageTimestamp": f"1970-01-01T00:00:{second:02}.500000Z",
    }
    return json.dumps(entry).encode()


def test_writes_are_counted_by_verb_and_resource():
    found = writes([line(), line(), line("delete"), line("patch", "rayclusters", subresource="status")], "operator")
    assert found == {Write("create", "pods"): 2, Write("delete", "pods"): 1, Write("patch", "rayclusters/status"): 1}


def test_reads_other_users_leases_and_unanswered_requests_are_not_counted():
    others = [
        line("get"),
        line("list"),
        line("watch"),
        line(user="operator-2"),
        line("update", "leases"),
        line(stage="RequestReceived"),
        b'{"stage": "ResponseComplete", "verb": "create", "user": {"username": "operator"}}',
    ]
    assert not writes(others, "operator")


def test_a_line_cut_short_is_skipped():
    assert writes([line()[:-10], line()], "operator").total() == 1


def test_a_user_named_inside_an_object_is_not_the_writer():
    assert not writes([line(user="bare", name="operator")], "operator")


def test_total_can_be_limited_to_a_resource_and_to_verbs():
    lines = [line("create", "events"), line("patch", "events"), line("delete", "events"), line(), line()]
    found = writes(lines, "operator")
    assert total(found) == 5
    assert total(found, resource="pods") == 2
    assert total(found, resource="events", verbs=["create", "patch"]) == 2


def test_total_keeps_subresources_apart():
    found = writes([line("patch", "pods", subresource="status")], "operator")
    assert total(found, resource="pods") == 0
    assert total(found, resource="pods/status") == 1


def test_the_summary_tells_the_most_frequent_first():
    found = writes([line("create", "events"), line(), line()], "operator")
    assert summary(found) == "2 create pods, 1 create events"


def test_only_whole_lines_after_the_mark_are_read(tmp_path):
    log = AuditLog(tmp_path / "audit.log")
    log.path.write_bytes(b"old\n")
    mark = log.mark()
    with log.path.open("ab") as file:
        file.write(b"new\nnewer\nhalf of")
    assert log.since(mark) == [b"new", b"newer"]


def test_created_pods_are_told_in_the_order_of_the_answers():
    lines = [
        line(name="b", second=2),
        line(name="a", second=1),
        line(name="refused", code=403),
        line(name="bound", subresource="binding"),
        line("create", "events", name="event"),
        line("delete", name="gone"),
        line(second=3),
    ]
    assert pods_created(lines, "operator") == [("a", 1.5), ("b", 2.5), ("", 3.5)]
