"""Where settings come from: a file, the environment, flags. Each source tells what it gives and under which name."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import yaml

from tpu_operator.cli.kuberay_only import OLD_VOLCANO, WITHOUT_EFFECT
from tpu_operator.cli.setting import PREFIX, SETTINGS, Setting, shown
from tpu_operator.config import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tpu_operator.cli.kuberay_only import WithoutEffect

KUBERAY_KIND: Final = ("config.ray.io/v1alpha1", "Configuration")
OUR_KIND: Final = ("config.tpu-operator.io/v1alpha1", "OperatorConfiguration")

CONFIG_FLAG: Final = "config"
CONFIG_VARIABLE: Final = f"{PREFIX}CONFIG"
NOT_SETTINGS: Final = frozenset({CONFIG_VARIABLE, "TPU_OPERATOR_BIN", "TPU_OPERATOR_CACHE"})
"""Variables of the tools around the operator (devcluster), and the one that names the file."""

# Kubernetes puts these into every container for a Service called tpu-operator, or tpu-operator-<anything>.
_SERVICE_LINK: Final = re.compile(r".*(_SERVICE_HOST|_SERVICE_PORT(_\w+)?|_PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")


@dataclass(frozen=True, slots=True)
class Given:
    """A value for a setting. `origin` names source and key; a value that is `typed` comes with a type (from a file)."""

    setting: Setting
    value: object
    origin: str
    typed: bool = False
    old_volcano: bool = False


@dataclass(slots=True)
class Source:
    """What one source gives, what of it has no effect, and what is wrong with it, a line a mistake."""

    given: list[Given] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)

    def take(self, setting: Setting, value: object, origin: str, *, typed: bool = False) -> None:
        """Note a value; what is empty text was not given."""
        if value is not None and value != "":
            self.given.append(Given(setting, value, origin, typed=typed))

    def take_kuberays(self, name: WithoutEffect, value: object, origin: str) -> None:
        """Note something of KubeRay that is no setting of ours; what is switched off needs no word."""
        on = str(value).lower()
        if name is OLD_VOLCANO:
            if on == "true":
                self.given.append(Given(SETTINGS["batch_scheduler"], "volcano", origin, old_volcano=True))
            elif on != "false":
                self.mistakes.append(f"{origin}: {shown(value)} cannot be: expected true or false")
        elif on != "false":
            self.notes.append(f"{origin} ({name.why})")


# -- file --------------------------------------------------------------------------------------------------------------


def from_file(path: Path) -> Source:
    """Settings of a Configuration of KubeRay's or an OperatorConfiguration of ours. Never raises."""
    source = Source()
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        source.mistakes.append(f"file {path}: cannot be read: {' '.join(str(error).split())}")
        return source
    if not isinstance(document, dict) or (kind := _kind(document)) not in (KUBERAY_KIND, OUR_KIND):
        kinds = " or ".join(f"kind: {kind} of apiVersion: {version}" for version, kind in (KUBERAY_KIND, OUR_KIND))
        source.mistakes.append(f"file {path}: holds no configuration: expected {kinds}")
        return source
    known = _keys(kuberays=kind == KUBERAY_KIND)
    taken: dict[str, str] = {}
    for key, value in document.items():
        if key not in ("apiVersion", "kind", "metadata"):
            _take_key(source, known, str(key), value, f"file {path}, key {key}")
            _refuse_twice(source, known, taken, str(key), path)
    return source


def _kind(document: Mapping[object, object]) -> tuple[str, str]:
    return str(document.get("apiVersion")), str(document.get("kind"))


def _keys(*, kuberays: bool) -> dict[str, Setting | WithoutEffect]:
    """Keys of a file. KubeRay's kind takes its own keys and ours, our kind only ours."""
    ours: dict[str, Setting | WithoutEffect] = {setting.key: setting for setting in SETTINGS.values()}
    if not kuberays:
        return ours
    theirs: dict[str, Setting | WithoutEffect] = {s.kuberay.key: s for s in SETTINGS.values() if s.kuberay.key}
    others = {name.key: name for name in (*WITHOUT_EFFECT, OLD_VOLCANO) if name.key}
    return {**ours, **theirs, **others}


def _take_key(
    source: Source, known: Mapping[str, Setting | WithoutEffect], key: str, value: object, origin: str
) -> None:
    found = known.get(key)
    if isinstance(found, Setting):
        source.take(found, value, origin, typed=True)
    elif found is not None:
        source.take_kuberays(found, value, origin)
    else:
        source.mistakes.append(f"{origin}: no such setting{_called_here(key) or did_you_mean(key, known)}")


def _called_here(key: str) -> str:
    same = next((s for s in SETTINGS.values() if s.kuberay.key == key), None)
    return f"; in this kind it is called {same.key}" if same else ""


def _refuse_twice(
    source: Source, known: Mapping[str, Setting | WithoutEffect], taken: dict[str, str], key: str, path: Path
) -> None:
    found = known.get(key)
    if isinstance(found, Setting) and (first := taken.setdefault(found.name, key)) != key:
        source.mistakes.append(f"file {path}: {first} and {key} are two names of one setting: keep one of them")


# -- environment -------------------------------------------------------------------------------------------------------


def from_environment(environ: Mapping[str, str]) -> Source:
    """KubeRay's variables, then ours, which win. Unknown ones of our prefix are mistakes, others are not ours."""
    source = Source()
    for setting in SETTINGS.values():
        name, read = setting.kuberay.env, setting.kuberay.read
        if text := environ.get(name, "") if name else "":
            value = read(text) if read else _kuberays_switch(setting, text) if setting.is_switch else text
            source.take(setting, value, f"environment {name}")
    for other in WITHOUT_EFFECT:
        if other.env and environ.get(other.env):
            source.take_kuberays(other, environ[other.env], f"environment {other.env}")
    ours = {setting.env: setting for setting in SETTINGS.values()}
    for name, text in environ.items():
        if name in ours:
            _take_text(source, ours[name], text, f"environment {name}")
        elif name.startswith(PREFIX) and name not in NOT_SETTINGS and not _SERVICE_LINK.fullmatch(name):
            source.mistakes.append(f"environment {name}: no such setting{did_you_mean(name, ours)}")
    return source


def _kuberays_switch(setting: Setting, text: str) -> bool:
    """KubeRay: what is on by default stays on unless `false` is said, what is off stays off unless `true` is."""
    return text.lower() != "false" if setting.default else text.lower() == "true"


def _take_text(source: Source, setting: Setting, text: str, origin: str) -> None:
    if not setting.is_document or not text:
        source.take(setting, text, origin)
        return
    try:
        source.take(setting, yaml.safe_load(text), origin, typed=True)
    except yaml.YAMLError:
        source.mistakes.append(f"{origin}: {shown(text)} cannot be: expected {setting.legal}")


# -- flags -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Flags(Source):
    """What the flags give. `config` is the file that they name, `rest` what is no flag."""

    config: str = ""
    rest: list[str] = field(default_factory=list)


def from_flags(arguments: Sequence[str]) -> Flags:
    """Flags as Go programs have them: --a=b, --a b, -a b; switches alone or with =true or =false. Never raises."""
    flags, known, todo = Flags(), _flags(), deque(arguments)
    while todo:
        argument = todo.popleft()
        name, equals, value = argument.lstrip("-").partition("=")
        origin = f"flag {_dashed(name)}"
        if not argument.startswith("-") or not name:
            flags.rest.append(argument)
        elif name not in known:
            flags.mistakes.append(f"{origin}: no such flag{did_you_mean(_dashed(name), map(_dashed, known))}")
        elif (text := value if equals else _value(known[name], todo)) is None:
            flags.mistakes.append(f"{origin}: needs a value")
        else:
            _take_flag(flags, known[name], text, origin)
    _join_lists(flags)
    return flags


def _dashed(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name}"


def _flags() -> dict[str, Setting | WithoutEffect | None]:
    """Flags by their names without dashes; None for the one that names the file."""
    ours: dict[str, Setting | WithoutEffect | None] = {name: s for s in SETTINGS.values() for name in s.flags}
    return {CONFIG_FLAG: None, **ours, **{name.flag: name for name in (*WITHOUT_EFFECT, OLD_VOLCANO) if name.flag}}


def _value(found: Setting | WithoutEffect | None, todo: deque[str]) -> str | None:
    """Value of a flag without `=`: a switch has none, others the next argument; None if there is none."""
    if found is not None and found.is_switch:
        return "true"
    return todo.popleft() if todo else None


def _take_flag(flags: Flags, found: Setting | WithoutEffect | None, value: str, origin: str) -> None:
    if found is None:
        flags.config = value
    elif isinstance(found, Setting):
        _take_text(flags, found, value, origin)
    else:
        flags.take_kuberays(found, value, origin)


def _join_lists(flags: Flags) -> None:
    """A list's flag that is repeated gives one more each time."""
    for setting in dict.fromkeys(given.setting.name for given in flags.given if given.setting.is_list):
        all_given = [given for given in flags.given if given.setting.name == setting]
        last = all_given[-1]
        joined = Given(last.setting, ",".join(str(given.value) for given in all_given), last.origin)
        flags.given = [given for given in flags.given if given not in all_given] + [joined]
