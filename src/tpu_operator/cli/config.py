"""`tpu-operator config show`, and the help on all settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml

from tpu_operator.cli.setting import SETTINGS, Setting, shown
from tpu_operator.cli.settings import DEFAULT
from tpu_operator.cli.sources import CONFIG_VARIABLE, OUR_KIND
from tpu_operator.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.cli.settings import Resolved

FORMATS = ("text", "json", "yaml")


def output_of(arguments: list[str]) -> tuple[str, list[str]]:
    """The value of -o or --output, and the other arguments."""
    rest = list(arguments)
    for index, argument in enumerate(rest):
        name, equals, value = argument.partition("=")
        if name in ("-o", "--output"):
            end = index + (1 if equals else 2)
            return value or "".join(rest[index + 1 : end]), rest[:index] + rest[end:]
    return "text", rest


def settings_text(resolved: Resolved, output: str) -> str:
    """Every setting with its value and source: a table, JSON, or a file for --config with what differs from the defaults."""
    if output not in FORMATS:
        raise InvalidInput(f"output {output!r}: write one of {', '.join(FORMATS)}")
    if output == "yaml":
        return _file(resolved)
    rows = [(name, getattr(resolved.config, name), resolved.origins[name]) for name in SETTINGS]
    if output == "json":
        return json.dumps({name: {"value": _plain(value), "source": origin} for name, value, origin in rows}, indent=2)
    table = [("SETTING", "VALUE", "SOURCE"), *((name, shown(value), origin) for name, value, origin in rows)]
    first, second = (min(60, max(len(row[column]) for row in table)) for column in (0, 1))
    return "\n".join(f"{name:{first}}  {value:{second}}  {origin}" for name, value, origin in table)


def _file(resolved: Resolved) -> str:
    version, kind = OUR_KIND
    given = {s.key: _plain(getattr(resolved.config, s.name)) for s in SETTINGS.values() if _is_given(resolved, s)}
    return yaml.safe_dump({"apiVersion": version, "kind": kind, **given}, sort_keys=False).rstrip()


def _is_given(resolved: Resolved, setting: Setting) -> bool:
    return resolved.origins[setting.name] != DEFAULT


def _plain(value: object) -> object:
    """A value as JSON and YAML know it."""
    return shown(value) if isinstance(value, frozenset) else json.loads(json.dumps(value, default=dict))


def flags_help() -> Iterator[str]:
    """A paragraph a setting: flags, variable, KubeRay's variable, default."""
    yield f"  --config FILE  [{CONFIG_VARIABLE}]"
    yield f"      File with settings: kind {OUR_KIND[1]}, or KubeRay's Configuration."
    for setting in SETTINGS.values():
        flags = ", ".join(f"-{flag}" if len(flag) == 1 else f"--{flag}" for flag in setting.flags)
        variables = ", ".join(name for name in (setting.env, setting.kuberay.env) if name)
        yield f"  {flags}  [{variables}]"
        yield f"      {setting.meaning}{'' if setting.has_effect else ' (Not in this version.)'}"
        yield f"      Expected: {setting.legal}. Default: {shown(setting.default)}."
