from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_operator.errors import InvalidInput
from tpu_operator.tpu.environment import (
    EnvEntry,
    Multislice,
    WorkerPlace,
    coordinator_address,
    host_names,
    hostname,
    hostname_fault,
    process_addresses,
    worker_environment,
)
from tpu_operator.tpu.shape import slice_shape

PLUGIN = [("TPU_DEVICE_PLUGIN_HOST_IP", ""), ("TPU_DEVICE_PLUGIN_ADDR", "$(TPU_DEVICE_PLUGIN_HOST_IP):2112")]


def pairs(entries):
    return [(entry.name, entry.value) for entry in entries]


def test_a_single_host_gets_id_0_and_no_hostnames():
    (entries,) = worker_environment(WorkerPlace("workers", 2, 0, 1))

    assert pairs(entries) == [("TPU_WORKER_ID", "0"), ("TPU_NAME", "workers-2"), *PLUGIN]


def test_a_host_of_several_gets_its_rank_and_the_names_of_all():
    (entries,) = worker_environment(WorkerPlace("workers", 3, 1, 2, "c-headless"))

    assert pairs(entries) == [
        ("TPU_WORKER_HOSTNAMES", "workers-3-0.c-headless,workers-3-1.c-headless"),
        ("TPU_WORKER_ID", "1"),
        ("TPU_NAME", "workers-3"),
        *PLUGIN,
    ]


@pytest.mark.parametrize(("host", "ids"), [(0, "01"), (1, "23")])
def test_two_tpu_containers_of_a_tpu7x_host_are_two_processes(host, ids):
    place = WorkerPlace("w", 0, host, 2, "s", containers=2, process_addresses=True)
    addresses = "w-0-0.s:8471,w-0-0.s:8472,w-0-1.s:8471,w-0-1.s:8472"

    for container, entries in enumerate(worker_environment(place)):
        assert pairs(entries) == [
            ("TPU_WORKER_HOSTNAMES", "w-0-0.s,w-0-1.s"),
            ("TPU_PROCESS_ADDRESSES", addresses),
            ("TPU_PROCESS_PORT", str(8471 + container)),
            ("TPU_WORKER_ID", ids[container]),
            ("TPU_NAME", "w-0"),
            *PLUGIN,
        ]


@pytest.mark.parametrize(
    ("service", "addresses"), [("", "localhost:8471,localhost:8472"), ("s", "w-1-0.s:8471,w-1-0.s:8472")]
)
def test_two_containers_of_a_single_host_know_of_each_other_too(service, addresses):
    first, second = worker_environment(WorkerPlace("w", 1, 0, 1, service, containers=2))

    assert dict(pairs(first))["TPU_PROCESS_ADDRESSES"] == addresses
    assert [dict(pairs(each))["TPU_PROCESS_PORT"] for each in (first, second)] == ["8471", "8472"]
    assert [dict(pairs(each))["TPU_WORKER_ID"] for each in (first, second)] == ["0", "1"]
    assert "TPU_WORKER_HOSTNAMES" not in dict(pairs(first))


@pytest.mark.parametrize(("hosts", "given_"), [(1, False), (2, True)])
def test_one_tpu7x_container_needs_addresses_on_several_hosts_only(hosts, given_):
    (entries,) = worker_environment(WorkerPlace("w", 0, 0, hosts, "s", process_addresses=True))

    assert ("TPU_PROCESS_ADDRESSES" in dict(pairs(entries))) is given_


def test_a_slice_name_of_its_own_is_taken_for_tpu_name():
    (entries,) = worker_environment(WorkerPlace("w", 0, 0, 1, slice_name="w-007-bcdfg"))

    assert dict(pairs(entries))["TPU_NAME"] == "w-007-bcdfg"


def test_the_node_address_comes_from_the_pod_and_before_what_refers_to_it():
    (entries,) = worker_environment(WorkerPlace("w", 0, 0, 1))

    assert entries[-2].manifest() == {
        "name": "TPU_DEVICE_PLUGIN_HOST_IP",
        "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}},
    }
    assert entries[-1].manifest() == {"name": entries[-1].name, "value": entries[-1].value}


def test_a_multislice_job_comes_first_with_a_port_a_container():
    place = WorkerPlace("w", 1, 0, 2, "s", containers=2, process_addresses=True)
    job = Multislice(4, 1, coordinator_address("w", 0, "s", with_port=True))

    for container, entries in enumerate(worker_environment(place, multislice=job)):
        assert pairs(entries)[:4] == [
            ("MEGASCALE_NUM_SLICES", "4"),
            ("MEGASCALE_SLICE_ID", "1"),
            ("MEGASCALE_COORDINATOR_ADDRESS", "w-0-0.s:8081"),
            ("MEGASCALE_PORT", str(8081 + container)),
        ]


def test_the_coordinator_is_host_0_of_the_slice_without_port_by_default():
    assert coordinator_address("w", 3, "s") == "w-3-0.s"


@pytest.mark.parametrize(("slices", "slice_id"), [(2, 2), (2, -1), (0, 0)])
def test_a_slice_id_outside_the_job_is_refused(slices, slice_id):
    with pytest.raises(InvalidInput, match="slice id"):
        Multislice(slices, slice_id, "w-0-0.s")


def test_outside_gke_the_shape_is_told_as_well():
    (entries,) = worker_environment(WorkerPlace("w", 0, 3, 4, "s"), shape=slice_shape("tpu-v6e-slice", "4x4", 4))

    assert pairs(entries)[-6:] == [
        ("TPU_TOPOLOGY", "4x4"),
        ("TPU_ACCELERATOR_TYPE", "v6e-16"),
        ("TPU_CHIPS_PER_HOST_BOUNDS", "2,2,1"),
        ("TPU_HOST_BOUNDS", "2,2,1"),
        ("TPU_TOPOLOGY_WRAP", "false,false,false"),
        ("TPU_SKIP_MDS_QUERY", "true"),
    ]


def test_what_is_unknown_of_the_shape_is_left_out():
    (entries,) = worker_environment(WorkerPlace("w", 0, 0, 1), shape=slice_shape("tpu-v99-slice", "2x2"))

    assert "TPU_ACCELERATOR_TYPE" not in dict(pairs(entries))


@pytest.mark.parametrize(
    ("replica", "host", "hosts", "containers"), [(0, 2, 2, 1), (0, -1, 2, 1), (0, 0, 0, 1), (-1, 0, 1, 1), (0, 0, 1, 0)]
)
def test_a_place_that_does_not_exist_is_refused(replica, host, hosts, containers):
    with pytest.raises(InvalidInput, match="no such place"):
        WorkerPlace("w", replica, host, hosts, "s", containers)


def test_several_hosts_without_a_service_are_refused():
    with pytest.raises(InvalidInput, match="headless service"):
        WorkerPlace("w", 0, 0, 2)


@given(
    group=st.from_regex("[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True),
    replica=st.integers(0, 999),
    hosts=st.integers(1, 70),
    containers=st.integers(1, 4),
    addressed=st.booleans(),
)
def test_ids_are_exactly_0_to_n_and_are_the_index_of_the_hostname(group, replica, hosts, containers, addressed):
    def environments(host):
        return worker_environment(
            WorkerPlace(group, replica, host, hosts, "s", containers, process_addresses=addressed)
        )

    processes = [(host, dict(pairs(entries))) for host in reversed(range(hosts)) for entries in environments(host)]
    ids = sorted(int(env["TPU_WORKER_ID"]) for _, env in processes)
    assert ids == list(range(hosts * containers))
    for host, env in processes:
        mine = int(env["TPU_WORKER_ID"])
        if hosts > 1:
            names = env["TPU_WORKER_HOSTNAMES"].split(",")
            assert len(names) == len(set(names)) == hosts
            assert names[mine // containers] == f"{hostname(group, replica, host)}.s"
        if "TPU_PROCESS_ADDRESSES" in env:
            addresses = env["TPU_PROCESS_ADDRESSES"].split(",")
            assert len(addresses) == len(set(addresses)) == hosts * containers
            assert addresses[mine] == f"{hostname(group, replica, host)}.s:{env['TPU_PROCESS_PORT']}"


@given(hosts=st.integers(2, 20), containers=st.integers(1, 4), addressed=st.booleans(), job=st.booleans())
def test_no_name_occurs_twice_and_all_hosts_get_the_same_lists(hosts, containers, addressed, job):
    multislice = Multislice(2, 1, "w-0-0.s") if job else None
    lists = set()
    for host in range(hosts):
        place = WorkerPlace("w", 1, host, hosts, "s", containers, process_addresses=addressed)
        for entries in worker_environment(place, multislice=multislice, shape=slice_shape("tpu7x", "2x2x2")):
            env = dict(pairs(entries))
            assert len(env) == len(entries)
            lists.add((env["TPU_WORKER_HOSTNAMES"], env.get("TPU_PROCESS_ADDRESSES")))
    assert len(lists) == 1


def test_names_and_addresses_agree_about_the_order():
    place = WorkerPlace("w", 12, 0, 3, "s.ns.svc.cluster.local")

    assert host_names("w", 12, 3, place.service)[2] == "w-12-2.s.ns.svc.cluster.local"
    assert process_addresses(place) == tuple(f"{name}:8471" for name in host_names("w", 12, 3, place.service))
    assert EnvEntry("A", "b").manifest() == {"name": "A", "value": "b"}


@pytest.mark.parametrize(
    ("group", "replicas", "hosts"), [("w", 0, 1), ("8w", 3, 4), ("a" * 59, 10, 10), ("a" * 57, 11, 64), ("a-b", 1, 1)]
)
def test_a_name_that_fits_in_the_longest_hostname_is_right(group, replicas, hosts):
    assert hostname_fault(group, replicas, hosts) is None


@pytest.mark.parametrize(
    ("group", "replicas", "hosts", "room", "fix"),
    [
        ("a" * 60, 10, 10, 59, "name it " + repr("a" * 59)),
        ("a" * 60, 11, 64, 57, "name it " + repr("a" * 57)),
        ("TPU.Group_1", 1, 4, 59, "name it 'tpu-group-1'"),
        ("-w", 1, 1, 59, "name it 'w'"),
        ("...", 1, 1, 59, "choose a name of at most 59 characters"),
        ("", 1, 1, 59, "choose a name of at most 59 characters"),
    ],
)
def test_a_name_that_does_not_fit_is_answered_with_one_that_does(group, replicas, hosts, room, fix):
    finding = hostname_fault(group, replicas, hosts)

    assert finding.severity == "error"
    assert finding.expected.startswith(f"at most {room} ")
    assert finding.fix.startswith(fix)
    if "name it" in fix:
        assert hostname_fault(finding.fix.split("'")[1], replicas, hosts) is None


@given(group=st.text(max_size=80), replicas=st.integers(0, 2000), hosts=st.integers(0, 3000))
def test_a_suggested_name_always_works(group, replicas, hosts):
    finding = hostname_fault(group, replicas, hosts)
    if finding and finding.fix.startswith("name it"):
        assert hostname_fault(finding.fix.split("'")[1], replicas, hosts) is None
