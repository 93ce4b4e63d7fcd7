"""How texts get through bash.

KubeRay puts values on the command line as they are (quirk 67), and users have come to write `$VAR` or their own quotes
in them. So a value that bash takes as one word stays as it is, and any other is put into quotes.
"""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath
from typing import Final

_ONE_WORD: Final = re.compile(
    r"""(?: [\w@%+=:,./~^\[\]-]           # harmless
          | \$\w+ | \$\{[^{}`]*\}         # variables
          | \$\([^()]*\) | `[^`]*`        # commands
          | '[^']*' | "(?:[^"\\]|\\.)*"   # quoted already
          | \\.                           # escaped
        )*""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_DASH_C: Final = re.compile(r"-[a-z]*c[a-z]*")


def word(value: str) -> str:
    """A value that reaches the program as one argument; variables in it are still expanded."""
    if _ONE_WORD.fullmatch(value):
        return value
    escaped = re.sub(r'(["\\`])', r"\\\1", value)
    return f'"{escaped}"'


def single_quoted(value: str) -> str:
    """A value that reaches the program as it is."""
    return shlex.quote(value)


def user_script(elements: list[str]) -> str:
    """A container's command and arguments as shell text, to be run before `ray start`.

    KubeRay joins the elements, so they are shell text already. Only in `bash -c <script>` the script is one argument
    and would lose its meaning without quotes (quirk 67).
    """
    if _is_shell_call(elements):
        elements = [*elements[:2], *(e if e == "--" else shlex.quote(e) for e in elements[2:])]
    text = "".join(f" {element} " for element in elements)
    # A newline before the `&&` that follows would be a syntax error; in braces any script is one command.
    return f" {{ {text.strip()}\n}} " if "\n" in text else text


def _is_shell_call(elements: list[str]) -> bool:
    """Whether they are `<shell> -c <script> ...`."""
    if len(elements) < len(("shell", "-c", "script")):
        return False
    return PurePosixPath(elements[0]).name in _SHELLS and bool(_DASH_C.fullmatch(elements[1]))
