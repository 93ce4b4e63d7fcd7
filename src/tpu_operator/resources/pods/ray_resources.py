"""What a node tells Ray that it has: CPUs, memory, GPUs, accelerators and custom resources."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Final

from tpu_operator.api.quantity import ZERO, InvalidQuantity, Quantity
from tpu_operator.resources.pods.shell import single_quoted
from tpu_operator.resources.tree import mapping
from tpu_operator.tpu import gke

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tpu_operator.api.json import JsonObject, JsonValue

RESOURCES: Final = "resources"
_ACCELERATORS: Final = {"aws.amazon.com/neuroncore": "neuron_cores", gke.RESOURCE: "TPU"}
_MIG: Final = re.compile(r"nvidia\.com/mig-\d+g\.\d+gb.*")
_BYTES: Final = ("memory", "object-store-memory")


def is_gpu(name: str) -> bool:
    """Whether a resource stands for GPUs: `nvidia.com/gpu` and its like, or a slice of one (MIG)."""
    return name.lower().endswith("gpu") or _MIG.fullmatch(name) is not None


def amount(value: JsonValue) -> Quantity:
    """A quantity, zero for what is none."""
    try:
        return Quantity.parse(value) if isinstance(value, str | int | float) else ZERO
    except InvalidQuantity:
        return ZERO


def declared(resources: Mapping[str, str]) -> dict[str, str]:
    """The `resources` field of a group as rayStartParams. Entries that are no quantity are left out, as in KubeRay."""
    params: dict[str, str] = {}
    custom: dict[str, float] = {}
    for name, text in resources.items():
        try:
            quantity = Quantity.parse(text)
        except InvalidQuantity:
            continue
        if flag := _flag(name):
            params[flag] = str(quantity.ceil_int())
        else:
            custom[name] = float(quantity.amount)
    return {**params, RESOURCES: rendered(custom)} if custom else params


def _flag(name: str) -> str | None:
    if is_gpu(name):
        return "num-gpus"
    return {"cpu": "num-cpus", "memory": "memory"}.get(name.lower())


def detected(container: JsonObject, given: Mapping[str, str]) -> dict[str, str]:
    """What follows from the resources of the Ray container, for the parameters that `given` lacks.

    CPUs: limit, else request, rounded up. Memory: limit, in bytes. GPUs: all limits of that kind together. One kind
    of accelerator joins the custom resources.
    """
    resources = mapping(container.get("resources"))
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    found = {
        "num-cpus": amount(limits.get("cpu")) or amount(requests.get("cpu")),
        "memory": amount(limits.get("memory")),
        "num-gpus": sum((amount(limits[name]) for name in limits if is_gpu(name)), ZERO),
    }
    missing = {name: str(value.ceil_int()) for name, value in found.items() if value and name not in given}
    if (merged := _with_accelerator(limits, given.get(RESOURCES))) is not None:
        missing[RESOURCES] = merged
    return missing


def _with_accelerator(limits: JsonObject, given: str | None) -> str | None:
    accelerator = next((name for name in sorted(_ACCELERATORS) if amount(limits.get(name))), None)
    custom = custom_resources(given)
    if accelerator is None or custom is None or set(custom) & set(_ACCELERATORS.values()):
        return None
    return rendered({**custom, _ACCELERATORS[accelerator]: float(amount(limits[accelerator]).amount)})


def custom_resources(text: str | None) -> dict[str, float] | None:
    """The user's `resources` parameter in any of its spellings; None if it is none of them.

    People write plain JSON, JSON in quotes for the shell, JSON with escaped quotes, or Python's single quotes (PT-03).
    """
    if text is None or not text.strip():
        return {}
    return next((found for each in _spellings(text) if (found := _read(each)) is not None), None)


def _spellings(text: str) -> Iterator[str]:
    bare = text.strip("\"'` ")
    yield text
    yield bare
    yield bare.replace('\\"', '"')
    yield bare.replace("'", '"')
    try:
        yield from shlex.split(text)
    except ValueError:
        return


def _read(text: str) -> dict[str, float] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    numbers = isinstance(found, dict) and all(isinstance(v, int | float) for v in found.values())
    return {str(name): value for name, value in found.items()} if numbers else None


def rendered(custom: Mapping[str, float]) -> str:
    """Custom resources as the value of `--resources`: compact JSON by name, in single quotes for the shell."""
    whole = {name: int(value) if float(value).is_integer() else value for name, value in custom.items()}
    return single_quoted(json.dumps(whole, sort_keys=True, separators=(",", ":")))


def readable(params: Mapping[str, str]) -> dict[str, str]:
    """The user's parameters in the form that `ray start` reads.

    Memory with a unit becomes bytes (PT-06). `resources` that reaches Ray as JSON stays as it is, another spelling of
    it is written anew (PT-03).
    """
    out = dict(params)
    for name in _BYTES:
        if name in out and (size := amount(out[name])):
            out[name] = str(size.ceil_int())
    if RESOURCES in out and not _reaches_ray(out[RESOURCES]) and (custom := custom_resources(out[RESOURCES])):
        out[RESOURCES] = rendered(custom)
    return out


def _reaches_ray(text: str) -> bool:
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    return "$" in text or (len(words) == 1 and _read(words[0]) is not None)
