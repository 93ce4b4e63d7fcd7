"""Slices of TPU groups: topology, chips and hosts fit together, and the hosts can have their names.

A group with a mistake is held up alone; the head's mistake holds up the cluster. What only might be wrong, such as a
topology that the pod leaves open (other clouds, a test bed), is a warning: GKE's webhook refuses that too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tpu_operator.api.groups import HeadGroupSpec, WorkerGroupSpec
from tpu_operator.api.names import HEAD_GROUP
from tpu_operator.errors import InvalidInput
from tpu_operator.planning.plan import Notice
from tpu_operator.planning.validation.mistake import SPEC_REASON, spec_mistake
from tpu_operator.planning.validation.node_groups import node_groups
from tpu_operator.resources.pods import tpu_nodes
from tpu_operator.resources.pods.ray_resources import amount
from tpu_operator.resources.pods.tpu_identity import needs_host_names
from tpu_operator.resources.tree import mapping
from tpu_operator.resources.wanted import wanted_slices
from tpu_operator.tpu import gke
from tpu_operator.tpu.environment import hostname_fault
from tpu_operator.tpu.finding import About, Finding, Severity, warning
from tpu_operator.tpu.generations import HOST_SIZES, find_generation
from tpu_operator.tpu.shape import check_chip_request, check_slice
from tpu_operator.tpu.topology import parse_topology

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.json import JsonObject, JsonValue
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.plan import Blocker


class TpuGroup(NamedTuple):
    """A head or worker group whose pods ask for chips."""

    path: str
    spec: HeadGroupSpec | WorkerGroupSpec

    @property
    def name(self) -> str:
        return self.spec.group_name if isinstance(self.spec, WorkerGroupSpec) else HEAD_GROUP

    @property
    def hosts(self) -> int:
        return self.spec.hosts if isinstance(self.spec, WorkerGroupSpec) else 1

    @property
    def told_hosts(self) -> int | None:
        """What the user wrote as numOfHosts."""
        return self.spec.num_of_hosts if isinstance(self.spec, WorkerGroupSpec) else 1

    @property
    def holds(self) -> str | None:
        """Name of the only group that a mistake here holds up, None if that is the whole cluster."""
        return self.name if isinstance(self.spec, WorkerGroupSpec) else None

    @property
    def pod_path(self) -> str:
        return f"{self.path}.template.spec"

    def field(self, about: About) -> str:
        """Path of what a finding is about."""
        return {
            About.ACCELERATOR: f"{self.pod_path}.nodeSelector[{gke.ACCELERATOR}]",
            About.TOPOLOGY: f"{self.pod_path}.nodeSelector[{gke.TOPOLOGY}]",
            About.CHIPS: f"{self.pod_path}.containers",
            About.HOSTS: f"{self.path}.numOfHosts" if self.holds else f"{self.pod_path}.nodeSelector[{gke.TOPOLOGY}]",
            About.NAME: f"{self.path}.groupName",
        }[about]

    def titled(self, text: str) -> str:
        return f"worker group {self.name!r}: {text}" if self.holds else f"head: {text}"


def tpu_groups(cluster: RayCluster) -> Iterator[TpuGroup]:
    """The groups that ask for chips, the head first."""
    groups = (TpuGroup(path, spec) for path, spec in node_groups(cluster))
    return (group for group in groups if tpu_nodes.pod_chips(group.spec.pod_spec))


def slices_fit(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Chips of the topology = chips of a pod x numOfHosts, on a slice that exists (GKE: "About TPUs in GKE")."""
    for group in tpu_groups(cluster):
        for finding in _findings(group):
            if finding.severity is Severity.ERROR:
                yield _mistake(group, finding)


def chip_requests_equal_limits(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Kubernetes refuses pods in which they differ; told here, it is told before any pod."""
    for group in tpu_groups(cluster):
        for at, container in enumerate(group.spec.containers):
            resources = mapping(container.get("resources"))
            request, limit = (_chips(mapping(resources.get(kind)).get(gke.RESOURCE)) for kind in ("requests", "limits"))
            for finding in check_chip_request(request, limit):
                field = f"{group.pod_path}.containers[{at}].resources"
                yield spec_mistake(field, group.titled(finding.message), finding.fix, group.holds)


def hosts_can_be_named(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """JAX and libtpu find the other hosts of a slice by `<group>-<replica>-<host>`, which must be a DNS label."""
    for group in tpu_groups(cluster):
        spec = group.spec
        if not isinstance(spec, WorkerGroupSpec) or not needs_host_names(spec):
            continue
        if fault := hostname_fault(spec.group_name, wanted_slices(spec), spec.hosts):
            yield spec_mistake(group.field(fault.about), fault.message, fault.fix, group.holds)


def doubts(cluster: RayCluster, _: OperatorConfig) -> Iterator[Notice]:
    """What works on some nodes only."""
    for group in tpu_groups(cluster):
        for finding in (*_findings(group), *_names_do_not_resolve(group)):
            if finding.severity is Severity.WARNING:
                key = f"tpu/{group.name}/{finding.about}/{finding.got}"
                yield Notice(key, SPEC_REASON, group.titled(str(finding)), action="Validate")


def _mistake(group: TpuGroup, finding: Finding) -> Blocker:
    return spec_mistake(group.field(finding.about), group.titled(finding.message), finding.fix, group.holds)


def _chips(value: JsonValue) -> int | None:
    return None if value is None else amount(value).ceil_int()


def _findings(group: TpuGroup) -> list[Finding]:
    spec = group.spec.pod_spec
    topology = tpu_nodes.topology(group.spec.template)
    if topology is None:
        return [_open_topology(group)]
    accelerator, chips = tpu_nodes.accelerator(spec) or "", tpu_nodes.pod_chips(spec)
    found = check_slice(accelerator, topology, chips, group.hosts)
    if any(each.about is About.HOSTS for each in found):
        found = check_slice(accelerator, topology, chips, group.told_hosts)  # words the number as the user did
    if any(each.about is About.CHIPS for each in found) and _shares_host(group, accelerator, topology, chips):
        return [_shared_host(topology, chips) if each.about is About.CHIPS else each for each in found]
    return found if group.holds else [_of_head(each) for each in found]


def _open_topology(group: TpuGroup) -> Finding:
    return warning(
        About.TOPOLOGY,
        f"node selector {gke.TOPOLOGY} is missing, so nobody checks whether numOfHosts {group.hosts} fits",
        expected="the topology of the node pool",
        got="nothing",
        fix=f"set the node selectors {gke.ACCELERATOR} and {gke.TOPOLOGY}, if the nodes have these labels",
    )


def _shares_host(group: TpuGroup, accelerator: str, topology: str, chips: int) -> bool:
    """A pod may take some chips of a single host and leave the others to other pods."""
    try:
        parsed = parse_topology(topology)
    except InvalidInput:
        return False
    single = parsed in find_generation(accelerator).single_host
    return single and group.hosts == 1 and chips in HOST_SIZES and chips < parsed.chips


def _shared_host(topology: str, chips: int) -> Finding:
    return warning(
        About.CHIPS,
        f"a pod takes {chips} chips of a host that has all of {topology}: it shares the host with other pods",
        expected="all chips of the host",
        got=str(chips),
        fix="request all of them, unless that is meant",
    )


def _of_head(finding: Finding) -> Finding:
    if finding.about is not About.HOSTS:
        return finding
    message = finding.message.partition(", numOfHosts")[0]
    return replace(finding, message=f"{message}, the head is one pod", fix="give the head the topology of one host")


_CLUSTER_DNS = (None, "", "ClusterFirst", "ClusterFirstWithHostNet")


def _names_do_not_resolve(group: TpuGroup) -> Iterator[Finding]:
    spec = group.spec.pod_spec
    if not isinstance(group.spec, WorkerGroupSpec) or not needs_host_names(group.spec) or _asks_cluster_dns(spec):
        return
    yield warning(
        About.NAME,
        "the hosts of a slice find each other by names that only the DNS of the cluster knows, which these pods do not ask",
        expected="dnsPolicy ClusterFirst, or ClusterFirstWithHostNet on the host network",
        got=str(spec.get("dnsPolicy") or "ClusterFirst on the host network"),
        fix="set dnsPolicy to ClusterFirstWithHostNet",
    )


def _asks_cluster_dns(spec: JsonObject) -> bool:
    policy = spec.get("dnsPolicy")
    return policy in _CLUSTER_DNS and (not spec.get("hostNetwork") or policy == "ClusterFirstWithHostNet")
