"""Environment variables of a container. A name that the operator sets occurs once (quirk 78).

Who wins is one of two rules. `fill_in`: the user does, ours is for where there is none. `insist`: the operator does,
which is what KubeRay's second entry of the same name comes to at run time. The entry stays where the user has put
it, because `$(NAME)` sees only what stands before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.resources.tree import entries

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject


def literal(name: str, value: str) -> JsonObject:
    """A variable with a value."""
    return {"name": name, "value": value}


def pod_field(name: str, path: str) -> JsonObject:
    """A variable taken from a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def secret_key(name: str, secret: str, key: str) -> JsonObject:
    """A variable taken from a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def has(container: JsonObject, name: str) -> bool:
    """Whether the container has a variable of that name."""
    return value_of(container, name) is not None


def value_of(container: JsonObject, name: str) -> JsonObject | None:
    """The entry that counts: the last of that name."""
    env = container.get("env")
    found = [e for e in env if isinstance(e, dict) and e.get("name") == name] if isinstance(env, list) else []
    return found[-1] if found else None


def fill_in(container: JsonObject, *wanted: JsonObject) -> None:
    """Append each variable that the container does not have."""
    env = entries(container, "env")
    taken = {entry.get("name") for entry in env}
    env += [entry for entry in wanted if entry["name"] not in taken]


def insist(container: JsonObject, *wanted: JsonObject) -> None:
    """Set each variable, in the place of the first one of its name if there is one."""
    env = entries(container, "env")
    for entry in wanted:
        found = [at for at, other in enumerate(env) if other.get("name") == entry["name"]]
        if not found:
            env.append(entry)
            continue
        env[found[0]] = entry
        for at in reversed(found[1:]):
            del env[at]
