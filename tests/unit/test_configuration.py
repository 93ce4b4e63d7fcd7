"""Settings: where they come from, which source wins, and what is said about mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError
from typer.testing import CliRunner

from tpu_operator.cli.config import settings_text
from tpu_operator.cli.kuberay_only import WITHOUT_EFFECT
from tpu_operator.cli.main import app
from tpu_operator.cli.setting import SETTINGS
from tpu_operator.cli.settings import DEFAULT, Resolved, resolve
from tpu_operator.cli.sources import NOT_SETTINGS
from tpu_operator.config import DEFAULT_GATES, OperatorConfig
from tpu_operator.errors import InvalidInput

KUBERAYS = {"apiVersion": "config.ray.io/v1alpha1", "kind": "Configuration"}
OURS = {"apiVersion": "config.tpu-operator.io/v1alpha1", "kind": "OperatorConfiguration"}


@pytest.fixture
def file(tmp_path: Path):
    def write(content: object, kind: dict[str, str] = KUBERAYS) -> str:
        path = tmp_path / "config.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump({**kind, **content}))
        return str(path)

    return write


def given(*flags: str, **environ: str) -> Resolved:
    return resolve(flags, environ)


def mistakes(*flags: str, **environ: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        resolve(flags, environ)
    return str(caught.value).split("\nerror: ")


def changed(resolved: Resolved) -> dict[str, object]:
    names = (name for name, origin in resolved.origins.items() if origin != DEFAULT)
    return {name: getattr(resolved.config, name) for name in names}


# -- names -------------------------------------------------------------------------------------------------------------


def test_nothing_given_is_the_defaults():
    assert given() == Resolved(OperatorConfig(), dict.fromkeys(SETTINGS, DEFAULT), ())


def test_every_setting_has_a_meaning_and_says_what_is_legal():
    for setting in SETTINGS.values():
        assert setting.meaning.endswith("."), setting.name
        assert setting.legal, setting.name
        setting.check(setting.default, typed=True)


def test_no_two_settings_share_a_name():
    flags = [flag for s in SETTINGS.values() for flag in s.flags]
    keys = [key for s in SETTINGS.values() for key in {s.key, s.kuberay.key} if key]
    variables = [name for s in SETTINGS.values() for name in (s.env, s.kuberay.env) if name]
    others = [name for o in WITHOUT_EFFECT for name in (o.flag, o.key, o.env) if name]
    for names in (flags, keys, variables):
        assert len(names) == len(set(names))
        assert not set(names) & set(others)


def test_no_variable_of_ours_can_be_one_that_kubernetes_makes_for_a_service():
    made = re.compile(r"_(SERVICE_HOST|SERVICE_PORT|PORT)(_|$)")
    assert not [s.env for s in SETTINGS.values() if made.search(s.env)]
    assert (
        given(
            TPU_OPERATOR_PORT="tcp://10.0.0.1:443",
            TPU_OPERATOR_METRICS_PORT_8080_TCP_ADDR="10.0.0.1",
            TPU_OPERATOR_SERVICE_PORT_HTTPS="443",
            TPU_OPERATOR_WEBHOOK_SERVICE_HOST="10.0.0.1",
        ).config
        == OperatorConfig()
    )


def test_variables_of_the_tools_beside_the_operator_are_not_settings():
    assert given(**dict.fromkeys(NOT_SETTINGS - {"TPU_OPERATOR_CONFIG"}, "/x")).config == OperatorConfig()


# -- flags -------------------------------------------------------------------------------------------------------------

FLAGS = [
    (["--watch-namespace=a, b ,"], {"namespaces": ("a", "b")}),
    (["-watch-namespace", "a,a"], {"namespaces": ("a",)}),
    (["-n", "a", "--namespace", "b"], {"namespaces": ("a", "b")}),
    (["--namespaces="], {}),
    (["--reconcile-concurrency", "4"], {"concurrent_passes": 4}),
    (["--enable-leader-election"], {"leader_election": True}),
    (["--enable-leader-election=false"], {"leader_election": False}),
    (["--leader-election", "--log-level=debug"], {"leader_election": True, "log_level": "debug"}),
    (["--leader-election-namespace", "ns"], {"leader_election_namespace": "ns"}),
    (["--metrics-addr=:9", "--health-probe-bind-address", "0"], {"metrics_address": ":9", "health_address": "0"}),
    (["--log-stdout-encoder=json"], {"log_format": "json"}),
    (["--log-file-path=/l", "--log-file-encoder", "console"], {"log_file": "/l", "log_file_format": "console"}),
    (["--batch-scheduler", "kai-scheduler"], {"batch_scheduler": "kai-scheduler"}),
    (["--enable-batch-scheduler"], {"batch_scheduler": "volcano"}),
    (["--enable-batch-scheduler=false", "--batch-scheduler=yunikorn"], {"batch_scheduler": "yunikorn"}),
    (["--enable-metrics"], {"cluster_metrics": True}),
    (["--resync=60", "--resync=30.5"], {"resync": 30.5}),
    (["--default-pod-labels={a: b}"], {"default_pod_labels": {"a": "b"}}),
    (["--head-sidecar-containers", '[{"name": "x"}]'], {"head_sidecar_containers": ({"name": "x"},)}),
]


@pytest.mark.parametrize(("flags", "want"), FLAGS, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_flags_are_read_as_go_programs_read_them(flags, want):
    assert changed(given(*flags)) == want


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--watch-namespac=a"], ["flag --watch-namespac: no such flag", "did you mean --watch-namespace?"]),
        (["--resync"], ["flag --resync: needs a value"]),
        (["--resync=0"], ["flag --resync", "expected a number above 0"]),
        (["--resync=soon"], ["flag --resync", '"soon"', "expected a number above 0"]),
        (["--create-parallelism=0"], ["flag --create-parallelism", "a whole number from 1 on"]),
        (["--leader-election=maybe"], ["flag --leader-election", '"maybe"', "true or false"]),
        (["--enable-batch-scheduler=maybe"], ["--enable-batch-scheduler", "true or false"]),
        (["--batch-scheduler=default"], ["volcano, yunikorn, scheduler-plugins, kai-scheduler"]),
        (["--batch-scheduler=kubernetes-was-v1alpha2"], ["expected one of volcano"]),
        (["--batch-scheduler=volcanoo"], ["did you mean volcano?"]),
        (["--enable-batch-scheduler", "--batch-scheduler=volcano"], ["cannot be given beside"]),
        (["--log-stdout-encoder=yaml"], ["one of console, json"]),
        (["--metrics-addr=8080"], ["write :8080"]),
        (["--watch-namespace=Team_A"], ["'Team_A' is no name of a namespace"]),
        (["--feature-gates=RayClusterMtls=true"], ["unknown feature gate RayClusterMtls", "mean RayClusterMTLS?"]),
        (["--feature-gates=RayClusterMTLS"], ["write RayClusterMTLS=true or RayClusterMTLS=false"]),
        (["--feature-gates=KubernetesWAS=true"], ["KubernetesWAS: not available in tpu-operator"]),
        (["--default-pod-labels={a"], ["--default-pod-labels", "a mapping of texts"]),
        (["--default-pod-labels={a: 5}"], ["--default-pod-labels", "a mapping of texts"]),
        (["--lease-duration=5"], ["retry_period < renew_deadline < lease_duration"]),
        (["extra"], ["'extra' is no flag"]),
        (["--config=/nowhere.yaml"], ["file /nowhere.yaml: cannot be read"]),
    ],
    ids=lambda v: v[0],
)
def test_a_mistake_in_a_flag_is_one_line_that_says_what_is_legal(flags, says):
    (line,) = mistakes(*flags)
    assert "\n" not in line
    for text in says:
        assert text in line


def test_all_mistakes_are_told_at_once():
    lines = mistakes("--resync=0", "--nonsense=1", TPU_OPERATOR_RESYNK="1")
    assert [line.split(":")[0] for line in sorted(lines)] == [
        "environment TPU_OPERATOR_RESYNK",
        "flag --nonsense",
        "flag --resync",
    ]


# -- environment -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("ENABLE_INIT_CONTAINER_INJECTION", "init_container_injection"),
        ("ENABLE_PROBES_INJECTION", "probes_injection"),
        ("ENABLE_GCS_FT_REDIS_CLEANUP", "redis_cleanup"),
        ("ENABLE_RANDOM_POD_DELETE", "random_pod_delete"),
        ("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", "head_cluster_ip_service"),
        ("ENABLE_LOGIN_SHELL", "login_shell"),
        ("ENABLE_DETERMINISTIC_HEAD_POD_NAME", "deterministic_head_pod_name"),
        ("USE_INGRESS_ON_OPENSHIFT", "ingress_on_openshift"),
        ("ENABLE_WEBHOOKS", "webhook"),
    ],
)
def test_kuberays_switches_leave_the_default_only_for_the_opposite_word(variable, name):
    default = SETTINGS[name].default
    for text in ("true", "True", "TRUE", "false", "False", "FALSE", "", "perhaps"):
        want = {"true": True, "false": False}.get(text.lower(), default)
        assert getattr(given(**{variable: text}).config, name) is want


@pytest.mark.parametrize(
    ("environ", "want"),
    [
        ({"CLUSTER_DOMAIN": "corp.example"}, {"cluster_domain": "corp.example"}),
        ({"CLUSTER_DOMAIN": ""}, {}),
        ({"RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": "60"}, {"resync": 60.0}),
        ({"RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": "0"}, {"resync": 86400.0}),
        ({"RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": "-1"}, {"resync": 86400.0}),
        ({"TPU_OPERATOR_NAMESPACES": "a, b"}, {"namespaces": ("a", "b")}),
        ({"TPU_OPERATOR_LOGIN_SHELL": "true"}, {"login_shell": True}),
        ({"TPU_OPERATOR_DEFAULT_POD_LABELS": '{"a": "b"}'}, {"default_pod_labels": {"a": "b"}}),
        ({"PATH": "/bin", "NAMESPACES": "x"}, {}),
        ({"ENABLE_LOGIN_SHELL": "true", "TPU_OPERATOR_LOGIN_SHELL": "false"}, {"login_shell": False}),
    ],
)
def test_variables_are_read(environ, want):
    assert changed(given(**environ)) == want


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("TPU_OPERATOR_NAMESPACE", "a", "did you mean TPU_OPERATOR_NAMESPACES?"),
        ("TPU_OPERATOR_LOGIN_SHELL", "perhaps", "expected true or false"),
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "5m", "expected a number above 0"),
    ],
)
def test_a_mistake_in_a_variable_names_it(variable, text, says):
    (line,) = mistakes(**{variable: text})
    assert line.startswith(f"environment {variable}: ")
    assert says in line


# -- file --------------------------------------------------------------------------------------------------------------


def test_kuberays_configuration_is_read_under_its_keys(file):
    content = {
        "metricsAddr": ":1",
        "probeAddr": ":2",
        "enableLeaderElection": False,
        "leaderElectionNamespace": "ns",
        "reconcileConcurrency": 3,
        "watchNamespace": "a, b",
        "logFile": "/log",
        "logFileEncoder": "console",
        "logStdoutEncoder": "json",
        "batchScheduler": "yunikorn",
        "enableMetrics": True,
        "headSidecarContainers": [{"name": "h", "image": "i"}],
        "workerSidecarContainers": [{"name": "w", "image": "i"}],
        "defaultContainerEnvs": [{"name": "A", "value": "b"}],
        "defaultPodAnnotations": {"a": "b"},
        "defaultPodLabels": {"c": "d"},
        "featureGates": {"RayClusterMTLS": True},
    }
    assert changed(given("--config", file(content))) == {
        "metrics_address": ":1",
        "health_address": ":2",
        "leader_election": False,
        "leader_election_namespace": "ns",
        "concurrent_passes": 3,
        "namespaces": ("a", "b"),
        "log_file": "/log",
        "log_file_format": "console",
        "log_format": "json",
        "batch_scheduler": "yunikorn",
        "cluster_metrics": True,
        "head_sidecar_containers": ({"name": "h", "image": "i"},),
        "worker_sidecar_containers": ({"name": "w", "image": "i"},),
        "default_container_envs": ({"name": "A", "value": "b"},),
        "default_pod_annotations": {"a": "b"},
        "default_pod_labels": {"c": "d"},
        "feature_gates": DEFAULT_GATES | {"RayClusterMTLS"},
    }


def test_our_kind_has_our_names_in_camel_case(file):
    content = {"namespaces": ["a"], "concurrentPasses": 3, "resync": 5, "stuckPodSlack": 1.5}
    want = {"namespaces": ("a",), "concurrent_passes": 3, "resync": 5.0, "stuck_pod_slack": 1.5}
    assert changed(given("--config", file(content, OURS))) == want
    assert changed(given(TPU_OPERATOR_CONFIG=file(content))) == want


@pytest.mark.parametrize(
    ("content", "kind", "says"),
    [
        ({"watchNamespaces": "a"}, KUBERAYS, "key watchNamespaces: no such setting; did you mean watchNamespace?"),
        ({"watchNamespace": "a"}, OURS, "in this kind it is called namespaces"),
        ({"reconcileConcurrency": "4"}, KUBERAYS, 'key reconcileConcurrency: "4" cannot be: expected a whole number'),
        ({"reconcileConcurrency": 4.5}, KUBERAYS, "expected a whole number"),
        ({"enableLeaderElection": "yes"}, KUBERAYS, "expected true or false"),
        ({"enableLeaderElection": 1}, KUBERAYS, "expected true or false"),
        ({"watchNamespace": 5}, KUBERAYS, "names, separated by commas"),
        ({"defaultPodLabels": {"a": 5}}, KUBERAYS, "a mapping of texts"),
        ({"defaultContainerEnvs": {"A": "b"}}, KUBERAYS, "a list of objects"),
        ({"featureGates": {"RayClusterMTLS": "yes"}}, OURS, "'yes' is neither true nor false"),
        ({"namespaces": ["a"], "watchNamespace": "b"}, KUBERAYS, "two names of one setting"),
        ("kind: ConfigMap", KUBERAYS, "expected kind: Configuration of apiVersion: config.ray.io/v1alpha1"),
        ("[]", KUBERAYS, "holds no configuration"),
        ("a: [", KUBERAYS, "cannot be read"),
    ],
)
def test_a_mistake_in_a_file_names_file_and_key(file, content, kind, says):
    path = file(content, kind)
    lines = mistakes("--config", path)
    assert all(line.startswith(f"file {path}") and "\n" not in line for line in lines)
    assert any(says in line for line in lines), lines


def test_gates_may_be_a_list_as_in_helm_values(file):
    path = file({"featureGates": [{"name": "RayClusterMTLS", "enabled": True}]})
    assert given("--config", path).config.gate("RayClusterMTLS")


# -- who wins ----------------------------------------------------------------------------------------------------------


def test_flags_win_over_ours_over_kuberays_over_the_file(file):
    layers = {"CLUSTER_DOMAIN": "theirs", "TPU_OPERATOR_CLUSTER_DOMAIN": "ours"}
    flags = ["--config", file({"clusterDomain": "file"}), "--cluster-domain=flag"]
    assert given(*flags, **layers).config.cluster_domain == "flag"
    assert given(*flags[:2], **layers).config.cluster_domain == "ours"
    assert given(*flags[:2], CLUSTER_DOMAIN="theirs").config.cluster_domain == "theirs"
    assert given(*flags[:2]).config.cluster_domain == "file"


def test_what_stays_in_the_file_counts_beside_flags(file):
    """KubeRay leaves all other flags out of account when there is a file."""
    resolved = given("--config", file({"clusterDomain": "file"}), "--reconcile-concurrency=2")
    assert changed(resolved) == {"cluster_domain": "file", "concurrent_passes": 2}
    assert resolved.origins["concurrent_passes"] == "flag --reconcile-concurrency"
    assert resolved.origins["cluster_domain"].endswith("config.yaml, key clusterDomain")


def test_gates_of_several_sources_add_up(file):
    path = file({"featureGates": {"RayClusterMTLS": True, "RayClusterNetworkPolicy": True}})
    resolved = given("--config", path, "--feature-gates=RayClusterMTLS=false")
    assert resolved.config.feature_gates == DEFAULT_GATES | {"RayClusterNetworkPolicy"}
    assert resolved.origins["feature_gates"].endswith("key featureGates, flag --feature-gates")


# -- without effect ----------------------------------------------------------------------------------------------------


def test_what_only_kuberay_has_is_accepted_and_told(file):
    path = file({"qps": 100.0, "burst": 200, "useKubernetesProxy": True, "deleteRayJobAfterJobFinishes": True})
    flags = ["--qps=1", "--burst", "2", "--use-kubernetes-proxy", "--forced-cluster-upgrade", "--zap-devel"]
    resolved = given("--config", path, *flags, ENABLE_ZERO_DOWNTIME="true")
    assert resolved.config == OperatorConfig()
    assert len(resolved.notes) == 4 + 5 + 1
    assert "flag --qps (requests are bounded by create_parallelism, not by their rate)" in resolved.notes


def test_a_switch_of_kuberays_that_is_off_needs_no_word():
    assert given("--use-kubernetes-proxy=false", "--enable-batch-scheduler=false").notes == ()


# -- the model itself --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"unknown": 1}, {"renew_deadline": 20.0}, {"namespaces": ("A",)}])
def test_a_configuration_made_in_code_is_checked_too(wrong):
    with pytest.raises(ValidationError):
        OperatorConfig(**wrong)


# -- commands ----------------------------------------------------------------------------------------------------------


def command(*args: str, code: int = 0, **environ: str) -> str:
    result = CliRunner().invoke(app, args, env=environ)
    assert result.exit_code == code, result.output
    return result.output


def test_show_prints_every_setting_with_value_and_source():
    rows = command("config", "show", "--resync=60", CLUSTER_DOMAIN="corp.example").splitlines()
    assert [row.split()[0] for row in rows] == ["SETTING", *SETTINGS]
    by_name = {row.split()[0]: row.split(None, 2)[1:] for row in rows}
    assert by_name["resync"] == ["60.0", "flag --resync"]
    assert by_name["cluster_domain"] == ['"corp.example"', "environment CLUSTER_DOMAIN"]
    assert by_name["login_shell"] == ["false", "default"]


def test_show_is_also_for_machines():
    shown = json.loads(command("config", "show", "-o", "json", "-n", "a"))
    assert shown["namespaces"] == {"value": ["a"], "source": "flag -n"}
    assert shown.keys() == SETTINGS.keys()


def test_what_show_writes_as_a_file_is_read_again_as_the_same(file):
    flags = ["--namespaces=a,b", "--feature-gates=RayClusterMTLS=true", "--default-pod-labels={a: b}", "--resync=7"]
    resolved = given(*flags)
    again = given("--config", file(settings_text(resolved, "yaml")))
    assert again.config == resolved.config


@pytest.mark.parametrize("args", [("config", "show"), ("run",)])
def test_commands_tell_mistakes_in_lines_and_end_with_2(args):
    output = command(*args, "--resync=0", "--wat", "x", code=2)
    assert len([line for line in output.splitlines() if line.startswith("error: ")]) == 3


def test_an_unknown_output_is_refused():
    assert "write one of text, json, yaml" in command("config", "show", "-o", "xml", code=2)


@pytest.mark.parametrize("args", [("config", "show", "--help"), ("run", "--help"), ("run", "-h")])
def test_help_lists_all_settings(args):
    output = command(*args)
    for setting in SETTINGS.values():
        assert f"--{setting.flag}" in output
        assert setting.env in output
