"""Settings of a process: defaults, then a file, KubeRay's variables, `TPU_OPERATOR_*`, flags; what comes later wins."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from tpu_operator.cli.setting import SETTINGS
from tpu_operator.cli.sources import CONFIG_VARIABLE, Flags, Given, Source, from_environment, from_file, from_flags
from tpu_operator.config import Gate, OperatorConfig
from tpu_operator.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class Resolved:
    """The configuration, where each setting comes from, and what was given in vain."""

    config: OperatorConfig
    origins: Mapping[str, str]
    notes: tuple[str, ...]


def read_config(arguments: Sequence[str] = ()) -> OperatorConfig:
    """The configuration of this process. InvalidInput names each mistake in a line of its own."""
    return resolve(arguments, os.environ).config


def resolve(arguments: Sequence[str], environ: Mapping[str, str]) -> Resolved:
    """Lay the sources over each other. InvalidInput names each mistake, where it was made, and what would be legal."""
    flags = from_flags(arguments)
    sources = [*_file(flags, environ), from_environment(environ), flags]
    mistakes = [mistake for source in sources for mistake in source.mistakes]
    mistakes += [f"{argument!r} is no flag: flags begin with --" for argument in flags.rest]
    given = [item for source in sources for item in source.given]
    values, origins = _laid_over(given, mistakes)
    mistakes += _two_schedulers(given)
    config = _together(values, mistakes)
    notes = [note for source in sources for note in source.notes]
    notes += [f"{item.origin} (not in this version)" for item in given if not item.setting.has_effect]
    return Resolved(config, origins, tuple(notes))


def _file(flags: Flags, environ: Mapping[str, str]) -> list[Source]:
    path = flags.config or environ.get(CONFIG_VARIABLE, "")
    return [from_file(Path(path))] if path else []


def _laid_over(given: list[Given], mistakes: list[str]) -> tuple[dict[str, object], dict[str, str]]:
    values: dict[str, object] = {}
    origins = dict.fromkeys(SETTINGS, DEFAULT)
    for item in given:
        name, before = item.setting.name, values.get(item.setting.name)
        try:
            if read := item.setting.adds_up:
                values[name] = {**(before if isinstance(before, dict) else {}), **read(item.value)}
            else:
                values[name] = item.setting.check(item.value, typed=item.typed)
        except ValueError as error:
            mistakes.append(f"{item.origin}: {error}")
        else:
            origins[name] = f"{origins[name]}, {item.origin}" if item.setting.adds_up and before else item.origin
    return values, origins


def _two_schedulers(given: list[Given]) -> list[str]:
    """KubeRay, too, refuses the old name of volcano beside the new setting."""
    schedulers = [item for item in given if item.setting.name == "batch_scheduler"]
    old = next((item for item in schedulers if item.old_volcano), None)
    new = next((item for item in schedulers if not item.old_volcano), None)
    return [f"{old.origin}: cannot be given beside {new.origin}: leave it away"] if old and new else []


def _together(values: Mapping[str, object], mistakes: list[str]) -> OperatorConfig:
    config = OperatorConfig()
    if not mistakes:
        try:
            config = OperatorConfig.model_validate(values)
        except ValidationError as error:
            mistakes += [item["msg"].removeprefix("Value error, ") for item in error.errors(include_url=False)]
    if config.gate(Gate.KUBERNETES_WAS):
        mistakes.append(
            f"feature gate {Gate.KUBERNETES_WAS}: not available in tpu-operator; "
            "turn it off, and set batch_scheduler for gang scheduling"
        )
    if mistakes:
        raise InvalidInput("\nerror: ".join(mistakes))
    return config
