"""Specs of faults.

Source: kafka trunk, trogdor/.../trogdor/fault/*Spec.java.
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import force_setattr

from coordinator_sim.kafka.orders.iteration_order import java_copy_capacity, java_hash_order
from coordinator_sim.trogdor.java_numbers import Int
from coordinator_sim.trogdor.specs import TaskSpec


class NetworkPartitionFaultSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.fault.NetworkPartitionFaultSpec",
):
    """Nodes of different sets hear nothing of each other.

    Args:
        partitions: Sets of node names, as they were given; a name that occurs twice fails the task.
    """

    partitions: tuple[tuple[str, ...], ...] = ()


class ProcessStopFaultSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.fault.ProcessStopFaultSpec",
):
    """Java processes stand still.

    Args:
        node_names: Distinct, in the order of Java's hash set.
        java_process_name: Part of the processes' names; empty for every Java process.
    """

    node_names: tuple[str, ...] = ()
    java_process_name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        capacity = java_copy_capacity(len(self.node_names))
        force_setattr(self, "node_names", tuple(java_hash_order(self.node_names, capacity)))


class NodeDegradeSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """How the network of one node is degraded.

    Args:
        network_device: Empty for every device but the loopback.
        latency_ms: Added to what the node sends; 0 for none.
        rate_limit_kbit: Kilobits a second that the node sends; 0 for no bound.
    """

    network_device: str = ""
    latency_ms: Int = 0
    rate_limit_kbit: Int = 0


class DegradedNetworkFaultSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.fault.DegradedNetworkFaultSpec",
):
    """Networks of nodes are slow.

    Args:
        node_specs: Node name -> how its network is degraded. UNSPECIFIED: Java writes them in an
            order that each process draws (Map.copyOf); here the order of insertion stays.
    """

    node_specs: Mapping[str, NodeDegradeSpec] = {}


class FilesUnreadableFaultSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.fault.FilesUnreadableFaultSpec",
):
    """Files of a Kibosh file system cannot be read.

    Args:
        node_names: Distinct, in the order of Java's hash set.
        mount_path: Where Kibosh is mounted.
        prefix: Files whose path begins so, below the mount.
        error_code: What a read fails with, an errno.
    """

    node_names: tuple[str, ...] = ()
    mount_path: str = ""
    prefix: str = ""
    error_code: Int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "node_names", tuple(java_hash_order(self.node_names)))
