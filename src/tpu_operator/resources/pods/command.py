"""Command of the Ray container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.pods.ray_start import command_line
from tpu_operator.resources.pods.shell import user_script
from tpu_operator.resources.tree import mapping, text_list, texts

if TYPE_CHECKING:
    from tpu_operator.config import OperatorConfig
    from tpu_operator.resources.pods.draft import Draft, RayNode

_ULIMIT: Final = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; "


def bash(config: OperatorConfig) -> list[str]:
    """The shell that runs what the operator generates."""
    return ["/bin/bash", "-cl" if config.login_shell else "-c", "--"]


def start_ray(node: RayNode, draft: Draft) -> None:
    """Run the user's own command, then `ray start`; leave a command alone that starts Ray itself or asks to be left."""
    ray = draft.ray
    own = [*texts(ray.get("command")), *texts(ray.get("args"))]
    if is_left_alone(draft) or "ray start" in " ".join(own):
        return
    before = f"{user_script(own)} && " if own else ""
    ray["command"] = text_list(bash(node.config))
    ray["args"] = [f"{before}{_ULIMIT}{command_line(node)}"]


def is_left_alone(draft: Draft) -> bool:
    """Whether the user asked that the command be kept (annotation on the cluster or on the template)."""
    annotations = mapping(draft.metadata.get("annotations"))
    return str(annotations.get(names.OVERWRITE_CONTAINER_CMD)).lower() == "true"
