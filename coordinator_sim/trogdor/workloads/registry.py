"""Which workload a spec is."""

from typing import Final

from coordinator_sim.trogdor import workload_specs
from coordinator_sim.trogdor.agent import WorkFailed
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.workloads.clients import Clients, Report, Workload
from coordinator_sim.trogdor.workloads.configurable_producer import ConfigurableProducer
from coordinator_sim.trogdor.workloads.connection_stress import ConnectionStress
from coordinator_sim.trogdor.workloads.consume_bench import ConsumeBench
from coordinator_sim.trogdor.workloads.produce_bench import ProduceBench
from coordinator_sim.trogdor.workloads.round_trip import RoundTrip
from coordinator_sim.trogdor.workloads.sustained_connection import SustainedConnection

WorkloadSpec = (
    workload_specs.ProduceBenchSpec
    | workload_specs.ConsumeBenchSpec
    | workload_specs.ConfigurableProducerSpec
    | workload_specs.RoundTripWorkloadSpec
    | workload_specs.ConnectionStressSpec
    | workload_specs.SustainedConnectionSpec
)
"""The specs that are workloads over clients."""

MOST_CLIENTS: Final = 5_000
"""Threads and connections of one workload together.

DEVIATION: Kafka's agent starts as many as a spec names, until its host has no more.
"""
_COUNTS: Final = (
    "num_threads",
    "threads_per_worker",
    "producer_connection_count",
    "consumer_connection_count",
    "metadata_connection_count",
)


def workload_of(task_id: str, spec: TaskSpec, clients: Clients, report: Report) -> Workload | None:
    """The workload of a spec; None for a spec that is none.

    A ShareConsumeBench is none: no share consumer is there to run it.

    Args:
        task_id: Id of the task.
        spec: What to do.
        clients: Where it runs.
        report: Takes statuses and the end.

    Raises:
        WorkFailed: the spec asks for more than MOST_CLIENTS.
    """
    count = sum(max(0, getattr(spec, name, 0)) for name in _COUNTS)
    if count > MOST_CLIENTS:
        raise WorkFailed(
            f"{count} threads and connections; the most of a workload are {MOST_CLIENTS}"
        )
    match spec:
        case workload_specs.ProduceBenchSpec():
            return ProduceBench(task_id, spec, clients, report)
        case workload_specs.ConsumeBenchSpec():
            return ConsumeBench(task_id, spec, clients, report)
        case workload_specs.ConfigurableProducerSpec():
            return ConfigurableProducer(task_id, spec, clients, report)
        case workload_specs.RoundTripWorkloadSpec():
            return RoundTrip(task_id, spec, clients, report)
        case workload_specs.ConnectionStressSpec():
            return ConnectionStress(task_id, spec, clients, report)
        case workload_specs.SustainedConnectionSpec():
            return SustainedConnection(task_id, spec, clients, report)
        case _:
            return None
