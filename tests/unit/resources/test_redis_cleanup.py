"""The Job that cleans Redis up after a cluster."""

from __future__ import annotations

import subprocess
import sys
import types
from dataclasses import replace

import pytest
from some_cluster import CONFIG, cluster, container, env, template

from tpu_operator.config import OperatorConfig
from tpu_operator.resources.redis_cleanup import (
    JobState,
    cleanup_job,
    cleanup_job_name,
    failure_text,
    is_needed,
    is_possible,
    job_state,
)

OPTIONS = {
    "redisAddress": "rediss://redis:6380",
    "redisUsername": {"value": "ray"},
    "redisPassword": {"valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}},
}


def ft(head=None, options=OPTIONS, **spec):
    return cluster(gcsFaultToleranceOptions=options, head={"template": head or template()}, **spec)


def pod_of(job):
    return job["spec"]["template"]


def job(**head_spec):
    return cleanup_job(ft(template(**head_spec)), CONFIG)


@pytest.mark.parametrize(
    ("of", "config", "needed"),
    [
        (ft(), CONFIG, True),
        (cluster(annotations={"ray.io/ft-enabled": "True"}), CONFIG, True),
        (cluster(annotations={"ray.io/ft-enabled": "false"}), CONFIG, False),
        (cluster(), CONFIG, False),
        (ft(options={"backend": "rocksdb"}), CONFIG, False),
        (ft(), OperatorConfig(redis_cleanup=False), False),
    ],
)
def test_it_is_needed_where_there_is_something_in_redis(of, config, needed):
    assert is_needed(of, config) is needed


def test_it_is_possible_where_the_head_has_an_image():
    assert is_possible(ft())
    assert not is_possible(ft({"spec": {"containers": []}}))
    assert not is_possible(ft({"spec": {"containers": [{"name": "ray"}]}}))


def test_it_is_tried_once_and_for_five_minutes_at_most():
    made = job()
    assert (made["spec"]["backoffLimit"], made["spec"]["activeDeadlineSeconds"]) == (0, 300)
    assert pod_of(made)["spec"]["restartPolicy"] == "Never"
    assert [c["resources"] for c in pod_of(made)["spec"]["containers"]] == [
        {"limits": {"cpu": "200m", "memory": "256Mi"}, "requests": {"cpu": "200m", "memory": "256Mi"}}
    ]


def test_credentials_are_references_and_addresses_are_as_they_were_given():
    """FN-06."""
    variables = env(container(pod_of(job()), "ray"))
    assert variables["RAY_REDIS_ADDRESS"] == "rediss://redis:6380"
    assert variables["REDIS_PASSWORD"] == {"secretKeyRef": {"name": "redis", "key": "password"}}
    assert variables["REDIS_USERNAME"] == "ray"
    assert variables["RAY_external_storage_namespace"] == "uid-1"
    assert variables["RAY_redis_db_connect_retries"] == "120"


def test_an_address_that_the_user_takes_from_a_secret_is_copied_as_a_reference():
    given = {"name": "RAY_REDIS_ADDRESS", "valueFrom": {"secretKeyRef": {"name": "r", "key": "a"}}}
    of = cluster(annotations={"ray.io/ft-enabled": "true"}, head={"template": template({"env": [given]})})
    assert env(container(pod_of(cleanup_job(of, CONFIG)), "ray"))["RAY_REDIS_ADDRESS"] == given["valueFrom"]


def test_labels_are_the_heads_but_for_those_by_which_it_is_found():
    """Quirk 17: whatever the template says."""
    head = template()
    head["metadata"] = {"labels": {"team": "infra", "app.kubernetes.io/created-by": "me", "ray.io/node-type": "head"}}
    made = cleanup_job(ft(head), CONFIG)
    for labels in (made["metadata"]["labels"], pod_of(made)["metadata"]["labels"]):
        assert (labels["ray.io/cluster"], labels["ray.io/node-type"]) == ("demo", "redis-cleanup")
        assert labels["team"] == "infra"


def test_it_goes_where_the_head_went_and_asks_nothing_about_other_pods():
    """Quirk 19."""
    affinity = {"nodeAffinity": {"x": 1}, "podAffinity": {"y": 1}, "podAntiAffinity": {"z": 1}}
    made = job(
        nodeSelector={"pool": "head"},
        tolerations=[{"operator": "Exists"}],
        affinity=affinity,
        topologySpreadConstraints=[{"maxSkew": 1}],
        schedulerName="gang",
        imagePullSecrets=[{"name": "pull"}],
        securityContext={"runAsNonRoot": True},
    )
    spec = pod_of(made)["spec"]
    assert spec["nodeSelector"] == {"pool": "head"}
    assert spec["affinity"] == {"nodeAffinity": {"x": 1}}
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["securityContext"] == {"runAsNonRoot": True}
    assert {"topologySpreadConstraints", "schedulerName"}.isdisjoint(spec)


def test_it_belongs_to_no_gang():
    made = cleanup_job(ft(), OperatorConfig(batch_scheduler="volcano"))
    assert "schedulerName" not in pod_of(made)["spec"]
    assert not any("scheduling" in key for key in pod_of(made)["metadata"]["annotations"])


def test_no_container_of_the_head_runs_but_rays_and_proxies_on_the_way_to_redis():
    proxy, wait = {"name": "proxy", "restartPolicy": "Always"}, {"name": "wait"}
    spec = pod_of(job(initContainers=[wait, proxy]))["spec"]
    assert [c["name"] for c in spec["containers"]] == ["ray"]
    assert [c["name"] for c in spec["initContainers"]] == ["proxy"]
    assert "initContainers" not in pod_of(job(initContainers=[wait]))["spec"]


def test_only_what_is_mounted_is_a_volume():
    mounts = {"volumeMounts": [{"name": "certs", "mountPath": "/certs"}]}
    head = template(
        mounts, volumes=[{"name": "certs", "secret": {"secretName": "c"}}, {"name": "data", "emptyDir": {}}]
    )
    names = {v["name"] for v in pod_of(cleanup_job(ft(head), CONFIG))["spec"]["volumes"]}
    assert names == {"certs", "shared-mem"}


def test_the_account_is_the_users_or_the_default_one():
    """That of the autoscaler goes with the cluster."""
    assert "serviceAccountName" not in pod_of(cleanup_job(ft(enableInTreeAutoscaling=True), CONFIG))["spec"]
    assert pod_of(job(serviceAccountName="mine"))["spec"]["serviceAccountName"] == "mine"


def test_probes_ports_and_devices_are_left_out():
    head = template({"resources": {"limits": {"google.com/tpu": "4"}}, "lifecycle": {"preStop": {}}})
    (made,) = pod_of(cleanup_job(ft(head), CONFIG))["spec"]["containers"]
    assert {"livenessProbe", "readinessProbe", "ports", "lifecycle"}.isdisjoint(made)
    assert "google.com/tpu" not in made["resources"]["limits"]


def named(name):
    of = ft()
    return replace(of, metadata=replace(of.metadata, name=name))


def test_names_stay_short_and_different():
    """NM-05, quirk 20."""
    names = [cleanup_job_name(named(n)) for n in ("a" * 49, "a" * 53, "b" + "a" * 52, "a" * 52 + "b")]
    assert names[0] == "a" * 49 + "-redis-cleanup"
    assert max(map(len, names)) <= 63
    assert len(set(names)) == len(names)


# -- the script --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "more", "expected"),
    [
        ("redis:6379", {}, ("redis", 6379, "", False, None)),
        ("redis", {}, ("redis", 6379, "", False, None)),
        ("redis://redis:1", {"REDIS_PASSWORD": "p"}, ("redis", 1, "p", False, None)),
        ("rediss://redis:2", {"REDIS_USERNAME": "u"}, ("redis", 2, "", True, "u")),
        ("redis://:q@redis:3", {}, ("redis", 3, "q", False, None)),
        ("redis://:q@redis:3", {"REDIS_PASSWORD": "p"}, ("redis", 3, "p", False, None)),
        ("r1:1,r2:2", {}, ("r1", 1, "", False, None)),
        ("[::1]:7", {}, ("::1", 7, "", False, None)),
    ],
)
def test_the_script_understands_all_forms_of_an_address(address, more, expected, monkeypatch):
    """FN-06: run in this process, with Ray's function played."""
    calls = []

    def cleanup_redis_storage(*, username=None, storage_namespace, **given):
        assert storage_namespace == "uid-1"
        calls.append((*given.values(), username))
        return True

    gcs_utils = types.SimpleNamespace(cleanup_redis_storage=cleanup_redis_storage)
    for name, module in (("ray", types.ModuleType("ray")), ("ray._private", types.ModuleType("ray._private"))):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "ray._private.gcs_utils", gcs_utils)
    monkeypatch.setattr("os.environ", {"RAY_REDIS_ADDRESS": address, "RAY_external_storage_namespace": "uid-1", **more})
    with pytest.raises(SystemExit) as ended:
        exec(python_of(job()), {})
    assert ended.value.code == 0
    assert calls == [expected]


def python_of(made):
    """The Python in the heredoc."""
    (script,) = pod_of(made)["spec"]["containers"][0]["args"]
    first, *lines = script.splitlines()
    assert first == "python - <<'END'"
    return "\n".join(lines[: lines.index("END")])


def test_the_shell_runs_the_script_and_its_failure_is_the_jobs(tmp_path):
    """Ray's function says that keys are left."""
    package = tmp_path / "ray" / "_private"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "gcs_utils.py").write_text("def cleanup_redis_storage(**_):\n    return False\n")
    made = pod_of(job())["spec"]["containers"][0]
    variables = {"RAY_REDIS_ADDRESS": "redis", "RAY_external_storage_namespace": "n", "PYTHONPATH": str(tmp_path)}
    path = {"PATH": f"{sys.prefix}/bin:/usr/bin:/bin"}
    command = [*made["command"], *made["args"]]
    done = subprocess.run(command, env={**variables, **path}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "removing the keys of n from Redis at redis:6379\n"


# -- how it stands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ([], JobState.RUNNING),
        ([("Complete", "True")], JobState.SUCCEEDED),
        ([("Complete", "False")], JobState.RUNNING),
        ([("Suspended", "True")], JobState.RUNNING),
        ([("Failed", "True")], JobState.FAILED),
        ([("FailureTarget", "True")], JobState.FAILED),
        ([("SuccessCriteriaMet", "True")], JobState.RUNNING),
    ],
)
def test_a_job_has_ended_when_its_conditions_say_so(conditions, state):
    status = {"conditions": [{"type": kind, "status": value} for kind, value in conditions]}
    assert job_state({"status": status}) is state


def test_why_it_failed_is_in_the_words_of_its_controller():
    condition = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long"}
    assert failure_text({"status": {"conditions": [condition]}}) == "DeadlineExceeded: too long"
    assert failure_text({}) == ""
