"""Which workload a spec is."""

from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.workload_specs import (
    ConfigurableProducerSpec,
    ConnectionStressSpec,
    ConsumeBenchSpec,
    ProduceBenchSpec,
    RoundTripWorkloadSpec,
    SustainedConnectionSpec,
)
from coordinator_sim.trogdor.workloads.clients import Clients, Report, Workload
from coordinator_sim.trogdor.workloads.configurable_producer import ConfigurableProducer
from coordinator_sim.trogdor.workloads.connection_stress import ConnectionStress
from coordinator_sim.trogdor.workloads.consume_bench import ConsumeBench
from coordinator_sim.trogdor.workloads.produce_bench import ProduceBench
from coordinator_sim.trogdor.workloads.round_trip import RoundTrip
from coordinator_sim.trogdor.workloads.sustained_connection import SustainedConnection

WorkloadSpec = (
    ProduceBenchSpec
    | ConsumeBenchSpec
    | ConfigurableProducerSpec
    | RoundTripWorkloadSpec
    | ConnectionStressSpec
    | SustainedConnectionSpec
)
"""The specs that are workloads over clients."""


def workload_of(task_id: str, spec: TaskSpec, clients: Clients, report: Report) -> Workload | None:
    """The workload of a spec; None for a spec that is none.

    A ShareConsumeBench is none: no share consumer is there to run it.

    Args:
        task_id: Id of the task.
        spec: What to do.
        clients: Where it runs.
        report: Takes statuses and the end.
    """
    match spec:
        case ProduceBenchSpec():
            return ProduceBench(task_id, spec, clients, report)
        case ConsumeBenchSpec():
            return ConsumeBench(task_id, spec, clients, report)
        case ConfigurableProducerSpec():
            return ConfigurableProducer(task_id, spec, clients, report)
        case RoundTripWorkloadSpec():
            return RoundTrip(task_id, spec, clients, report)
        case ConnectionStressSpec():
            return ConnectionStress(task_id, spec, clients, report)
        case SustainedConnectionSpec():
            return SustainedConnection(task_id, spec, clients, report)
        case _:
            return None
