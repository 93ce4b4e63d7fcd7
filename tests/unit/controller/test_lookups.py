"""What is found by name is remembered for a while, and of Secrets no values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from builders import cluster
from tpu_operator.controller.lookups import FRESH, NEWS, Lookups
from tpu_operator.errors import Gone, Transient
from tpu_operator.resources.registry import ChildKey

SECRET = ChildKey("Secret", "demo")
ACCOUNT = ChildKey("ServiceAccount", "mine")
DEMO = cluster()


@dataclass
class Server:
    """Answers to GET."""

    objects: dict = field(default_factory=dict)
    error: Exception | None = None
    asked: Counter = field(default_factory=Counter)
    now: float = 0.0

    async def get(self, resource, namespace, name):
        assert namespace == "team-a"
        self.asked[resource.kind] += 1
        if self.error:
            raise self.error
        try:
            return self.objects[ChildKey(resource.kind, name)]
        except KeyError:
            raise Gone("not found") from None


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def lookups(server):
    return Lookups(server, clock=lambda: server.now)


def secret():
    """Applied with kubectl, which notes the values in an annotation."""
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"data": {"auth_token": "c2VjcmV0"}}'}
    owners = [{"uid": DEMO.uid, "controller": True}]
    metadata = {"name": "demo", "annotations": applied, "ownerReferences": owners}
    return {"kind": "Secret", "metadata": metadata, "data": {"auth_token": "c2VjcmV0"}}


async def test_the_value_of_a_secret_is_not_kept(server, lookups):
    server.objects[SECRET] = secret()
    await lookups.refresh(DEMO, {SECRET})
    assert lookups.found(DEMO.uid)[SECRET]["data"] == {"auth_token": ""}
    assert "c2VjcmV0" not in repr(lookups._looks)


async def test_it_is_asked_once_a_minute_for_what_is_there(server, lookups):
    server.objects[SECRET] = secret()
    for server.now in (0, 1, FRESH - 1):
        await lookups.refresh(DEMO, {SECRET})
    assert server.asked["Secret"] == 1
    server.now = FRESH
    await lookups.refresh(DEMO, {SECRET})
    assert server.asked["Secret"] == 2


async def test_it_is_asked_often_for_a_secret_that_is_in_the_way(server, lookups):
    server.objects[SECRET] = {"kind": "Secret", "metadata": {"name": "demo"}}
    for server.now in (0, 0.1, NEWS):
        await lookups.refresh(DEMO, {SECRET})
    assert server.asked["Secret"] == 2


async def test_it_is_asked_often_for_what_is_missing(server, lookups):
    for server.now in (0, 0.1, NEWS):
        await lookups.refresh(DEMO, {ACCOUNT})
    assert lookups.absent(DEMO.uid) == {ACCOUNT}
    assert server.asked["ServiceAccount"] == 2
    server.objects[ACCOUNT] = {"metadata": {"name": "mine"}}
    server.now = 2 * NEWS
    await lookups.refresh(DEMO, {ACCOUNT})
    assert lookups.absent(DEMO.uid) == set()
    assert set(lookups.found(DEMO.uid)) == {ACCOUNT}


async def test_what_cannot_be_found_out_is_neither_there_nor_missing(server, lookups):
    server.error = Transient("overload")
    await lookups.refresh(DEMO, {SECRET})
    assert (lookups.found(DEMO.uid), lookups.absent(DEMO.uid)) == ({}, set())


async def test_what_was_written_is_asked_for_again(server, lookups):
    await lookups.refresh(DEMO, {SECRET})
    server.objects[SECRET] = secret()
    lookups.written(DEMO.uid, SECRET)
    await lookups.refresh(DEMO, {SECRET})
    assert set(lookups.found(DEMO.uid)) == {SECRET}


async def test_what_is_not_needed_any_more_is_forgotten(server, lookups):
    server.objects[SECRET] = secret()
    await lookups.refresh(DEMO, {SECRET})
    await lookups.refresh(DEMO, set())
    assert lookups.found(DEMO.uid) == {}
    assert server.asked["Secret"] == 1
