"""spec.gcsFaultToleranceOptions: where Ray's control store survives the loss of the head."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from tpu_operator.api.fields import ApiObject, Manifest, QuantityText, Text
from tpu_operator.api.schema import Core, Crd, Rule

BACKEND_IS_FIXED: Final = Rule("self == oldSelf", "the backend of a RayCluster cannot be changed")


class RedisCredential(ApiObject):
    """User name or password for Redis: a literal `value`, or a reference as in a container's environment."""

    value: Annotated[Text | None, Crd("The value itself.")] = None
    value_from: Annotated[Manifest | None, Core("api.core.v1.EnvVarSource"), Crd("Where the value is taken from.")] = (
        None
    )


class GcsStorage(ApiObject):
    """Volume of the rocksdb backend: an own claim by name, or what the operator should claim."""

    claim_name: Annotated[Text | None, Crd("PersistentVolumeClaim of yours to use.")] = None
    size: Annotated[QuantityText | None, Crd("Size of the claim to make, 1Gi if absent.")] = None
    storage_class_name: Annotated[Text | None, Crd("Storage class of the claim to make.")] = None
    access_modes: Annotated[tuple[Text, ...], Crd("Access modes of the claim to make, ReadWriteOnce if absent.")] = ()
    sub_path: Annotated[Text | None, Crd("Path within the volume.")] = None
    deletion_policy: Annotated[
        Literal["DeleteWithCluster", "Retain"] | None,
        Crd("Whether the claim is deleted with the cluster; DeleteWithCluster if absent."),
    ] = None


class GcsFaultToleranceOptions(ApiObject):
    """GCS fault tolerance, by an external Redis (also if `backend` is absent) or by RocksDB on a volume."""

    backend: Annotated[
        Literal["redis", "rocksdb"] | None,
        Crd("Where the state is kept, redis if absent. It cannot be changed.", rules=(BACKEND_IS_FIXED,)),
    ] = None
    redis_address: Annotated[Text | None, Crd("Address of the Redis server, as host:port.")] = None
    redis_username: Annotated[RedisCredential | None, Crd("User name for Redis.")] = None
    redis_password: Annotated[RedisCredential | None, Crd("Password for Redis.")] = None
    external_storage_namespace: Annotated[
        Text | None, Crd("Prefix of the cluster's keys in Redis; its uid if absent.")
    ] = None
    storage: Annotated[GcsStorage | None, Crd("Volume of the rocksdb backend.")] = None
