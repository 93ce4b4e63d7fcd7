"""Play recorded cases with this operator and compare what it does with what was recorded of another one.

    python -m scripts.recordings --tool record.py CASE...                       play and compare
    python -m scripts.recordings --tool record.py --observed FOLDER CASE...     keep what was observed there
    python -m scripts.recordings --tool record.py --observed FOLDER --only-compare CASE...

Neither the cases (folders of input.yaml, steps.yaml and a recording) nor the tool that plays them is part of this
repository. Differences that are meant stand in tests/recordings/intended-differences.yaml. The exit code is the tool's: 0 if
there are no others. The control plane is a bare one of its own: the tool plays kubelet, scheduler and garbage collector.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from devcluster.daemons import mortal_command
from devcluster.errors import DevclusterError
from devcluster.options import Options
from devcluster.plane import ControlPlane
from devcluster.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).parents[1]
CRD: Final = ROOT / "crds" / "ray.io_rayclusters.yaml"
INTENDED: Final = ROOT / "tests" / "recordings" / "intended-differences.yaml"
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 30.0

PROBE: Final = "operator-is-up"
PROBES: Final = f"/apis/ray.io/v1/namespaces/{PROBE}/rayclusters"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="recordings-") as scratch:
        observed = options.observed or Path(scratch) / "observed"
        try:
            if not options.only_compare and (code := _record(options, observed, Path(scratch) / "operator.log")):
                print(f"some cases could not be played (exit code {code})", file=sys.stderr)
        except DevclusterError as error:
            print(f"recordings: {error}", file=sys.stderr)
            return 1
        return _tool(options, "compare", "--observed", str(observed), "--ignore", str(options.ignore))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.recordings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="+", type=Path, metavar="CASE", help="folder of a case")
    parser.add_argument(
        "--tool", type=Path, required=True, metavar="FILE", help="the program that records and compares"
    )
    parser.add_argument(
        "--observed", type=Path, metavar="FOLDER", help="where to leave what was observed; default: nowhere"
    )
    parser.add_argument("--only-compare", action="store_true", help="compare what is in --observed already")
    parser.add_argument("--ignore", type=Path, default=INTENDED, metavar="FILE", help="differences that are meant")
    parser.add_argument("--settle", type=float, default=3.0, help="seconds without a change that end a step; default 3")
    return parser


def _record(options: argparse.Namespace, observed: Path, log: Path) -> int:
    with ControlPlane.start(Options(bare=True, crds=(CRD,))) as plane, _operator(plane, log):
        more = ("--kubeconfig", str(plane.kubeconfig), "--out", str(observed), "--settle", str(options.settle))
        return _tool(options, "record", *more)


def _tool(options: argparse.Namespace, command: str, *more: str) -> int:
    cases = [str(case) for case in options.cases]
    return subprocess.run([sys.executable, str(options.tool), command, *cases, *more], check=False).returncode


@contextmanager
def _operator(plane: ControlPlane, log: Path) -> Iterator[None]:
    """The operator as a process, up and serving."""
    command = mortal_command([sys.executable, "-m", "tpu_operator.cli", "run"])
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=plane.environment())
    try:
        _wait_until_it_serves(plane, process, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_it_serves(plane: ControlPlane, process: subprocess.Popen[bytes], log: Path) -> None:
    """A step ends when nothing changes any more, so the first one must not begin before the operator can act."""

    def check() -> None:
        if process.poll() is not None:
            raise DevclusterError(f"the operator has ended:\n{log.read_text()[-2000:]}")

    plane.create_namespace(PROBE)
    with plane.client() as client:
        client.post(PROBES, _probe())
        wait_until(
            lambda: "status" in client.get(f"{PROBES}/{PROBE}"),
            "the operator serves",
            timeout=START_SECONDS,
            check=check,
        )
        client.delete(f"{PROBES}/{PROBE}")


def _probe() -> dict[str, object]:
    """A RayCluster that is suspended from the start: it gets a status, and no pods."""
    template = {"spec": {"containers": [{"name": "ray-head", "image": "none"}]}}
    spec = {"suspend": True, "headGroupSpec": {"rayStartParams": {}, "template": template}}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": PROBE}, "spec": spec}


if __name__ == "__main__":
    sys.exit(main())
