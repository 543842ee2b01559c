"""Which nodes a task runs on, and which specs make no task.

Source: kafka trunk, trogdor/.../trogdor: `newController` of each spec; the controllers.
"""

from collections.abc import Callable
from typing import Any, Final

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.trogdor import workload_specs
from coordinator_sim.trogdor.fault_specs import (
    DegradedNetworkFaultSpec,
    FilesUnreadableFaultSpec,
    NetworkPartitionFaultSpec,
    ProcessStopFaultSpec,
)
from coordinator_sim.trogdor.specs import NoOpTaskSpec, SampleTaskSpec, TaskSpec
from coordinator_sim.trogdor.topology import Topology


class InvalidSpec(CoordinatorSimError):
    """A spec that makes no task; the text says why, as Kafka does."""


_NODES: Final[dict[type[TaskSpec], Callable[[Any], set[str]]]] = {
    workload_specs.ConfigurableProducerSpec: lambda spec: {spec.producer_node},
    workload_specs.ConnectionStressSpec: lambda spec: set(spec.client_node),
    workload_specs.ConsumeBenchSpec: lambda spec: {spec.consumer_node},
    DegradedNetworkFaultSpec: lambda spec: set(spec.node_specs),
    workload_specs.ExternalCommandSpec: lambda spec: {spec.command_node},
    FilesUnreadableFaultSpec: lambda spec: set(spec.node_names),
    NetworkPartitionFaultSpec: lambda spec: {name for side in spec.partitions for name in side},
    ProcessStopFaultSpec: lambda spec: set(spec.node_names),
    workload_specs.ProduceBenchSpec: lambda spec: {spec.producer_node},
    workload_specs.RoundTripWorkloadSpec: lambda spec: {spec.client_node},
    workload_specs.ShareConsumeBenchSpec: lambda spec: {spec.consumer_node},
    workload_specs.SustainedConnectionSpec: lambda spec: {spec.client_node},
}
"""The nodes that a spec names; the specs that are not here run on every node with an agent."""
_EVERYWHERE: Final = (NoOpTaskSpec, SampleTaskSpec)


def check_spec(spec: TaskSpec) -> None:
    """Refuse a spec that makes no task.

    Raises:
        InvalidSpec: a node stands twice in the sets of a network partition.
    """
    if isinstance(spec, NetworkPartitionFaultSpec):
        seen: set[str] = set()
        for name in (name for side in spec.partitions for name in side):
            if name in seen:
                raise InvalidSpec(f"Node {name} appears in more than one partition.")
            seen.add(name)


def target_nodes(spec: TaskSpec, topology: Topology) -> set[str]:
    """The names of the nodes that a task runs on, whether they exist or not.

    Raises:
        InvalidSpec: nobody knows where such a task runs.
    """
    if isinstance(spec, _EVERYWHERE):
        return topology.agent_names()
    nodes = _NODES.get(type(spec))
    if nodes is None:
        raise InvalidSpec(f"{type(spec).__name__} has no nodes")
    return nodes(spec)
