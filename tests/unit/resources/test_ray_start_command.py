"""The command line as Ray sees it, after bash."""

from __future__ import annotations

import subprocess

import pytest
from some_cluster import CONFIG, cluster, env, group, head_of, ray, template, worker_of

FQDN = "demo-head-svc.ns.svc.cluster.local"
HEAD = {"--block", "--dashboard-agent-listen-port=52365", "--dashboard-host=0.0.0.0", "--metrics-export-port=8080"}
WORKER = {f"--address={FQDN}:6379", "--block", "--dashboard-agent-listen-port=52365", "--metrics-export-port=8080"}


def argv(pod: dict, **variables: str) -> list[str]:
    """Arguments that the program `ray` gets when bash runs the container's command; other programs are only named."""
    shell, option, dashes = ray(pod)["command"]
    script = "ray() { printf '%s\\0' \"$@\"; }\n" + ray(pod)["args"][0]
    done = subprocess.run(
        [shell, option, dashes, script],
        env={"PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout.split("\0")[:-1]


def worker_argv(params: dict, container: dict | None = None, **variables: str) -> set[str]:
    return set(argv(worker_of(cluster(group(container, rayStartParams=params))), **variables)[1:])


def test_a_head_without_parameters_gets_kuberays():
    assert argv(head_of(cluster())) == ["start", "--head", *sorted(HEAD)]


def test_a_worker_without_parameters_joins_the_head_service():
    assert argv(worker_of(cluster(group()))) == ["start", *sorted(WORKER)]


def test_the_text_is_spaced_as_kuberays_is():
    text = env(ray(head_of(cluster(head={"rayStartParams": {"port": "7"}}))))["KUBERAY_GEN_RAY_START_CMD"]
    assert text.startswith("ray start --head  --block  --dashboard-agent-listen-port=52365  --dashboard-host=0.0.0.0  ")
    assert text.endswith(" --port=7 ")


@pytest.mark.parametrize(
    ("params", "more", "less"),
    [
        ({"block": "false"}, set(), set()),
        ({"no-monitor": "TRUE"}, {"--no-monitor"}, set()),
        ({"no-monitor": "false"}, set(), set()),
        ({"include-dashboard": "false", "log-color": "True"}, {"--include-dashboard=false", "--log-color=True"}, set()),
        ({"num-cpus": 0}, {"--num-cpus=0"}, set()),
        ({"metrics-export-port": "9"}, {"--metrics-export-port=9"}, {"--metrics-export-port=8080"}),
        ({"address": "other:1"}, {"--address=other:1"}, {f"--address={FQDN}:6379"}),
        ({"node-ip-address": "$MY_IP"}, {"--node-ip-address=10.0.0.1"}, set()),
        ({"node-ip-address": "${MY_IP}"}, {"--node-ip-address=10.0.0.1"}, set()),
        ({"node-ip-address": "$(echo 10.0.0.2)"}, {"--node-ip-address=10.0.0.2"}, set()),
        ({"node-ip-address": "`echo 10.0.0.3`"}, {"--node-ip-address=10.0.0.3"}, set()),
        ({"node-name": "two words $MY_IP"}, {"--node-name=two words 10.0.0.1"}, set()),
        ({"node-name": "a;b|c&d>e(f)"}, {"--node-name=a;b|c&d>e(f)"}, set()),
        ({"node-name": "it's"}, {"--node-name=it's"}, set()),
        ({"node-name": "'single quoted'"}, {"--node-name=single quoted"}, set()),
        ({"node-name": '"double quoted"'}, {"--node-name=double quoted"}, set()),
        ({"node-name": "line\nbreak"}, {"--node-name=line\nbreak"}, set()),
        ({"node-name": ""}, {"--node-name="}, set()),
        ({"system-config": '{"a": [1, 2]}'}, {'--system-config={"a": [1, 2]}'}, set()),
        (
            {"memory": "8Gi", "object-store-memory": "2G"},
            {"--memory=8589934592", "--object-store-memory=2000000000"},
            set(),
        ),
        ({"memory": "1.5Gi"}, {"--memory=1610612736"}, set()),
        ({"memory": "123"}, {"--memory=123"}, set()),
        ({"memory": "$MEM"}, {"--memory=64"}, set()),
    ],
)
def test_parameters_of_the_user_reach_ray(params, more, less):
    assert worker_argv(params, MY_IP="10.0.0.1", MEM="64") == (WORKER - less) | more


@pytest.mark.parametrize(
    "spelling",
    [
        '"{\\"Custom\\": 2, \\"B\\": 1}"',
        '{"Custom": 2, "B": 1}',
        '\'{"Custom": 2, "B": 1}\'',
        "{'Custom': 2, 'B': 1}",
        "\"{'Custom': 2, 'B': 1}\"",
        ' {"Custom": 2, "B": 1} ',
    ],
)
def test_every_spelling_of_resources_reaches_ray_as_json(spelling):
    (found,) = [a for a in worker_argv({"resources": spelling}) if a.startswith("--resources=")]
    assert found.replace(" ", "") in ('--resources={"Custom":2,"B":1}', '--resources={"B":1,"Custom":2}')


def test_resources_that_work_are_left_as_they_are():
    pod = worker_of(cluster(group(rayStartParams={"resources": '"{\\"a\\": 1}"'})))
    assert ' --resources="{\\"a\\": 1}" ' in ray(pod)["args"][0]


def test_resources_that_are_no_json_reach_ray_as_one_argument_and_lose_no_gpus():
    found = worker_argv({"resources": "{a: 1}"}, {"resources": {"limits": {"nvidia.com/gpu": 1}}})
    assert found == WORKER | {"--resources={a: 1}", "--num-gpus=1"}


@pytest.mark.parametrize(
    ("own", "printed"),
    [
        ({"command": ["echo", "preparing"], "args": ["the", "head"]}, "preparing the head\n"),
        ({"args": ["echo a && echo b"]}, "a\nb\n"),
        ({"args": ["echo a\necho b # said\n"]}, "a\nb\n"),
        ({"args": ["cat <<END\nline\nEND\n"]}, "line\n"),
        ({"args": ["export GREETING=hello;", "echo $GREETING"]}, "hello\n"),
        ({"command": ["bash", "-c", "cd /usr; pwd"]}, "/usr\n"),
        ({"command": ["/bin/sh", "-ec"], "args": ["cd /usr; pwd"]}, "/usr\n"),
        ({"command": ["/bin/bash", "-c", "--"], "args": ["echo one; echo two"]}, "one\ntwo\n"),
        ({"command": None, "args": None}, ""),
    ],
)
def test_a_command_of_the_user_runs_first(own, printed):
    output = argv(worker_of(cluster(group(own))))
    assert output[0] == f"{printed}start"
    assert set(output[1:]) == WORKER


@pytest.mark.parametrize(
    ("container", "annotations"),
    [
        ({"command": ["python", "x.py"]}, {"ray.io/overwrite-container-cmd": "TRUE"}),
        ({"args": ["ray start --block"]}, {}),
        ({"command": ["ray", "start"], "args": ["--block"]}, {}),
        ({}, {"ray.io/overwrite-container-cmd": "true"}),
    ],
)
def test_a_command_that_is_kept_still_finds_the_generated_one(container, annotations):
    pod = worker_of(cluster(group(container), annotations=annotations))
    assert (ray(pod).get("command"), ray(pod).get("args")) == (container.get("command"), container.get("args"))
    assert env(ray(pod))["KUBERAY_GEN_RAY_START_CMD"].startswith("ray start  --address=")
    assert pod["metadata"].get("annotations", {}) == ({"ray.io/overwrite-container-cmd": "true"} if annotations else {})


def test_the_annotation_on_the_template_keeps_the_command_too():
    kept = {"metadata": {"annotations": {"ray.io/overwrite-container-cmd": "true"}}, **template({"args": ["x"]})}
    assert ray(worker_of(cluster(group(template=kept))))["args"] == ["x"]


def test_a_login_shell_is_used_if_the_administrator_wants_it():
    config = CONFIG.model_copy(update={"login_shell": True})
    pod = worker_of(cluster(group()), config)
    assert ray(pod)["command"] == pod["spec"]["initContainers"][0]["command"] == ["/bin/bash", "-cl", "--"]


def test_workers_use_the_heads_port_and_service():
    own = cluster(group(), head={"rayStartParams": {"port": "6380"}, "headService": {"metadata": {"name": "door"}}})
    pod = worker_of(own)
    assert "--address=door.ns.svc.cluster.local:6380" in argv(pod)
    assert env(ray(pod))["RAY_ADDRESS"] == "door.ns.svc.cluster.local:6380"
    assert env(ray(pod))["RAY_PORT"] == "6380"
    assert env(ray(pod))["RAY_IP"] == "door"
