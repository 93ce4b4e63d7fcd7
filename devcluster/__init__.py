"""The local control plane: real etcd and kube-apiserver, fake nodes, started in seconds and gone without a trace.

Used by the demo, the tests and the benchmarks; not part of the wheel.
"""

from devcluster.options import AuditLevel, Options, User
from devcluster.plane import ControlPlane
from devcluster.pools import Pool, PoolSpec, parse_pool

__all__ = ["AuditLevel", "ControlPlane", "Options", "Pool", "PoolSpec", "User", "parse_pool"]
