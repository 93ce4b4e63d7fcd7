"""The suspend state machine, row by row."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from tpu_operator.planning.suspend import SuspendPhase, SuspendStep, suspend_step

RUN = SuspendStep(SuspendPhase.RUNNING, create_pods=True)
ANNOUNCE = SuspendStep(SuspendPhase.SUSPENDING)
DRAIN = SuspendStep(SuspendPhase.SUSPENDING, delete_pods=True)
FINISH = SuspendStep(SuspendPhase.SUSPENDED, finished=True)
REST = SuspendStep(SuspendPhase.SUSPENDED)
SWEEP = SuspendStep(SuspendPhase.SUSPENDED, delete_pods=True)


@pytest.mark.parametrize(
    ("spec", "suspending", "suspended", "pods", "want"),
    [
        pytest.param(None, False, False, 3, RUN, id="a cluster that never heard of suspend runs"),
        pytest.param(False, False, False, 0, RUN, id="suspend false runs"),
        pytest.param(True, False, False, 3, ANNOUNCE, id="a suspension is stored before the first pod goes"),
        pytest.param(True, False, False, 0, FINISH, id="without pods there is nothing to announce"),
        pytest.param(True, True, False, 3, DRAIN, id="a stored suspension deletes the pods"),
        pytest.param(False, True, False, 3, DRAIN, id="a suspension once begun is not called off"),
        pytest.param(None, True, False, 1, DRAIN, id="nor by removing the field"),
        pytest.param(True, True, False, 0, FINISH, id="no pod left ends the suspension"),
        pytest.param(False, True, False, 0, FINISH, id="also if it is not wanted any more"),
        pytest.param(True, False, True, 0, REST, id="a suspended cluster rests"),
        pytest.param(True, False, True, 1, SWEEP, id="a late pod of a suspended cluster is deleted"),
        pytest.param(False, False, True, 0, RUN, id="suspend false resumes in the same pass"),
        pytest.param(None, False, True, 0, RUN, id="removing suspend resumes as well"),
        pytest.param(True, True, True, 2, DRAIN, id="both conditions True are a suspension under way"),
        pytest.param(False, True, True, 0, FINISH, id="and it comes to its end"),
    ],
)
def test_a_step_follows_from_spec_conditions_and_pods(spec, suspending, suspended, pods, want):
    assert suspend_step(spec_suspend=spec, suspending=suspending, suspended=suspended, pods_left=pods) == want


@dataclass
class Cluster:
    """Plays passes: the conditions are stored, pods come and go as the step says."""

    suspending: bool = False
    suspended: bool = False
    pods: int = 0

    def a_pass(self, spec: bool | None) -> SuspendStep:
        step = suspend_step(
            spec_suspend=spec, suspending=self.suspending, suspended=self.suspended, pods_left=self.pods
        )
        self.suspending, self.suspended = step.suspending, step.suspended
        if step.delete_pods:
            self.pods = 0
        if step.create_pods:
            self.pods = 3
        return step


@pytest.mark.parametrize(("first", "second"), [*itertools.product((True, False, None), repeat=2)])
def test_every_history_ends_where_the_spec_says(first, second):
    cluster = Cluster()
    for spec in (None, first, second, second, second, second):
        cluster.a_pass(spec)
    assert (cluster.pods > 0, cluster.suspended, cluster.suspending) == (not second, bool(second), False)


def test_no_step_both_deletes_and_creates():
    for spec, suspending, suspended, pods in itertools.product(
        (True, False, None), (True, False), (True, False), (0, 1)
    ):
        step = suspend_step(spec_suspend=spec, suspending=suspending, suspended=suspended, pods_left=pods)
        assert not (step.delete_pods and step.create_pods)
        assert not (step.suspending and step.suspended)
