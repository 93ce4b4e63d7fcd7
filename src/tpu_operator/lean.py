"""Importing a library without the parts of it, or of its friends, that we do not use.

`import kubernetes.aio` also imports the whole synchronous client, and `import kopf` every Kubernetes client that is installed:
together they more than double start-up time and memory of the operator.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def without(*modules: str) -> Iterator[None]:
    """Let empty modules stand in for `modules` while the block imports; those that are loaded already stay.

    Afterwards the stand-ins are gone, so that whoever wants the real ones can import them.
    """
    stand_ins = {name: ModuleType(name) for name in modules if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]
