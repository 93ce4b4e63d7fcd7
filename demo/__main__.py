"""`python -m demo [--once]`: play the story; without --once, leave the control plane running afterwards."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from demo.story import StoryError, play
from demo.world import World
from devcluster.options import Options
from devcluster.plane import ControlPlane
from devcluster.pools import parse_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
POOLS = ("tpu-v6e-slice:4x4:3",)
STOP_SECONDS = 15.0


@contextmanager
def operator(plane: ControlPlane, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The operator as a process of its own, as a user would run it out of a cluster."""
    command = [str(Path(sys.executable).with_name("tpu-operator")), "run"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=plane.environment(), stdout=file, stderr=file)  # noqa: S603
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main() -> int:
    """Run the demo; 0 if every step came out right."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="play it through and exit")
    once = parser.parse_args().once
    print("starting etcd, kube-apiserver, controller manager, scheduler and three fake v6e 4x4 node pools ...")
    options = Options(pools=tuple(map(parse_pool, POOLS)), crds=(ROOT / "crds" / "ray.io_rayclusters.yaml",))
    with ControlPlane.start(options) as plane, plane.client() as client:
        log = plane.logs / "tpu-operator.log"
        with operator(plane, log) as process:
            try:
                play(World(client, ROOT / "manifests" / "samples" / "raycluster.v6e-multihost.yaml"), process)
            except StoryError as error:
                print(f"\nFAILED: {error}\n\nlast lines of the operator's log:", file=sys.stderr)
                print("\n".join(log.read_text(encoding="utf-8").splitlines()[-40:]), file=sys.stderr)
                return 1
            if not once:
                _wait(plane)
    return 0


def _wait(plane: ControlPlane) -> None:
    kubectl = plane.environment()["PATH"].split(os.pathsep)[0]
    print(
        f"\nIt goes on running. In another terminal:\n\n"
        f"  export KUBECONFIG={plane.kubeconfig} PATH={kubectl}:$PATH\n"
        f"  kubectl get raycluster demo -o wide\n"
        f"  kubectl get pods -L ray.io/worker-group-replica-index,ray.io/replica-host-index\n"
        f"  kubectl patch raycluster demo --type=json -p "
        f'\'[{{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":3}}]\'\n'
        f"  kubectl label pod NAME devcluster/fail=true     # lets a host fail\n"
        f"  kubectl get events\n\nCtrl-C ends it."
    )
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        print("\nstopping")


if __name__ == "__main__":
    sys.exit(main())
