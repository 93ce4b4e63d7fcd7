"""What validation asks of a container: its environment and its mounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tpu_operator.api.json import JsonObject

AUTOSCALER_V2_ENV = "RAY_enable_autoscaler_v2"


def objects(value: object) -> Iterator[JsonObject]:
    """The objects of a JSON list; whatever else stands there is skipped."""
    return (
        (cast("JsonObject", item) for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())
    )


def env_entry(env: Iterable[JsonObject], name: str) -> JsonObject | None:
    """The entry of an `env` list with that name."""
    return next((e for e in env if e.get("name") == name), None)


def container_env(container: Mapping[str, object] | None, name: str) -> JsonObject | None:
    """The entry of a container's environment with that name."""
    return env_entry(objects((container or {}).get("env")), name)


def env_path(owner: str, name: str) -> str:
    """Path of an environment entry; list-map lists are addressed by name, which is how people look for them."""
    return f"{owner}.env[name={name}]"


def ray_container_path(owner: str) -> str:
    """Path of the Ray container, always the first, of a head or worker group."""
    return f"{owner}.template.spec.containers[0]"


def switched_on(entry: JsonObject | None) -> bool:
    """Whether an environment entry is `1` or `true`, which is what Ray takes for on."""
    return entry is not None and str(entry.get("value", "")) in ("1", "true")


def occupied_mounts(container: Mapping[str, object] | None, owner: str, volume: str, path: str) -> Iterator[str]:
    """Paths of the mounts of a container that use `volume` or lie at `path`."""
    for index, mount in enumerate(objects((container or {}).get("volumeMounts"))):
        if mount.get("name") == volume or str(mount.get("mountPath", "")).rstrip("/") == path:
            yield f"{owner}.volumeMounts[{index}]"
