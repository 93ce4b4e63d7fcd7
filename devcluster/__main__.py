"""`python -m devcluster`: build, up, run."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from devcluster.binaries import ensure, to_stderr
from devcluster.building import PACKAGES
from devcluster.daemons import mortal_command
from devcluster.errors import DevclusterError
from devcluster.options import AuditLevel, Options
from devcluster.plane import ControlPlane
from devcluster.pools import PoolSpec, parse_pool
from tpu_operator.errors import InvalidInput

DEFAULT_POOL = "tpu-v6e-slice:4x4:2"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = parser().parse_args(arguments)
    # SIGINT too: a shell script starts what it puts in the background with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        code: int = options.action(options)
    except DevclusterError as error:
        to_stderr(f"devcluster: {error}")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return code


def parser() -> argparse.ArgumentParser:
    """Build the parser of the three commands."""
    root = argparse.ArgumentParser(prog="python -m devcluster", description=__doc__)
    commands = root.add_subparsers(required=True)

    builder = commands.add_parser("build", help="build the programs now (first time: minutes)")
    builder.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PACKAGES)}; default: all")
    builder.set_defaults(action=_build)

    up = commands.add_parser("up", help="start, print the path of the kubeconfig, wait for Ctrl-C")
    _plane_options(up)
    up.add_argument("--kubeconfig-out", type=Path, metavar="FILE", help="also write the kubeconfig there")
    up.set_defaults(action=_up)

    run = commands.add_parser("run", help="start, run a command with KUBECONFIG set, stop, return its exit code")
    _plane_options(run)
    run.add_argument("--tool", action="append", default=[], choices=list(PACKAGES), help="have it on PATH, as kubectl")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    run.set_defaults(action=_run)
    return root


def _plane_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--pool",
        action="append",
        type=_pool,
        metavar="ACCELERATOR:TOPOLOGY[:SLICES[:CHIPS]]",
        help=f"fake TPU node pools, as often as you like; default {DEFAULT_POOL}",
    )
    command.add_argument("--cpu-nodes", type=int, default=2, help="fake nodes without TPUs; default 2")
    command.add_argument("--bare", action="store_true", help="etcd and kube-apiserver only: no nodes, no controllers")
    command.add_argument("--crd", action="append", type=Path, default=[], metavar="FILE", help="CRDs to install")
    command.add_argument("--audit", action="store_true", help="write an audit log")
    command.add_argument("--audit-bodies", action="store_true", help="write an audit log with requests and responses")


def _pool(text: str) -> PoolSpec:
    try:
        return parse_pool(text)
    except (ValueError, InvalidInput) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _plane(options: argparse.Namespace) -> Options:
    if options.bare and options.pool:
        raise DevclusterError("--bare has no nodes: leave out --pool, or --bare")
    pools = options.pool or ([] if options.bare else [parse_pool(DEFAULT_POOL)])
    level = AuditLevel.METADATA if options.audit else None
    return Options(
        bare=options.bare,
        pools=tuple(pools),
        cpu_nodes=options.cpu_nodes,
        crds=tuple(options.crd),
        audit=AuditLevel.REQUEST_RESPONSE if options.audit_bodies else level,
    )


def _build(options: argparse.Namespace) -> int:
    for name, path in ensure(options.names or PACKAGES).items():
        print(f"{name}\t{path}")
    return 0


def _up(options: argparse.Namespace) -> int:
    with ControlPlane.start(_plane(options)) as plane, _copied(plane.kubeconfig, options.kubeconfig_out) as kubeconfig:
        print(kubeconfig, flush=True)
        to_stderr(f"up at {plane.server}; export KUBECONFIG={kubeconfig}; Ctrl-C stops it")
        if plane.audit_log:
            to_stderr(f"audit log: {plane.audit_log}")
        with suppress(KeyboardInterrupt):
            signal.pause()
    return 0


@contextmanager
def _copied(kubeconfig: Path, target: Path | None) -> Iterator[Path]:
    if target is None:
        yield kubeconfig
        return
    target = target.absolute()
    shutil.copy(kubeconfig, target)
    try:
        yield target
    finally:
        target.unlink(missing_ok=True)


def _run(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise DevclusterError("no command: write python -m devcluster run [options] -- COMMAND ...")
    with ControlPlane.start(_plane(options)) as plane:
        environment = plane.environment()
        folders = dict.fromkeys(str(path.parent) for path in ensure(options.tool).values())
        environment["PATH"] = os.pathsep.join([*folders, environment["PATH"]])
        if plane.audit_log:
            environment["AUDIT_LOG"] = str(plane.audit_log)
        return _exit_code(command, environment)


def _exit_code(command: list[str], environment: dict[str, str]) -> int:
    """Run `command`; Ctrl-C and SIGTERM are its business, and the control plane stays up until it has ended."""
    program = shutil.which(command[0], path=environment["PATH"])
    if program is None:
        raise DevclusterError(f"{command[0]}: command not found")
    with subprocess.Popen(mortal_command([program, *command[1:]], signal.SIGTERM), env=environment) as process:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        code = process.wait()
    return code if code >= 0 else 128 - code


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
