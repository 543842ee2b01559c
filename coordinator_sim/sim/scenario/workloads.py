"""Workloads of a scenario: tasks of Trogdor's that bring clients of their own.

Each runs in a process of its own, which is named like its task, and on several nodes in one a node,
named `<task>/<node>`. Faults name these processes as they name members.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from coordinator_sim.errors import ScenarioError
from coordinator_sim.trogdor import jackson, workload_specs
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.targets import target_nodes
from coordinator_sim.trogdor.topology import Topology
from coordinator_sim.trogdor.workloads.registry import WorkloadSpec

WORKLOADS: Final[tuple[type[TaskSpec], ...]] = get_args(WorkloadSpec)
"""The workloads that run in virtual time."""


class WorkloadTask(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A workload: the id of its task, and its spec as JSON; times count from the run's start."""

    id: str
    spec: dict[str, Any]

    @cached_property
    def parsed(self) -> TaskSpec:
        """The spec, read once: each happening asks for the processes of all workloads.

        Raises:
            ScenarioError: it is none.
        """
        try:
            return jackson.from_tree(self.spec, TaskSpec)
        except TrogdorRefusal as refusal:
            raise ScenarioError(f"task {self.id!r}: {refusal.message}") from None

    def processes(self) -> dict[str, str]:
        """Node -> the name of the process there."""
        nodes = sorted(target_nodes(self.parsed, Topology({})))
        if len(nodes) == 1:
            return {nodes[0]: self.id}
        return {node: f"{self.id}/{node}" for node in nodes}

    def group_id(self) -> str | None:
        """The group that it names or is known to use; None without one."""
        spec = self.parsed
        if isinstance(spec, workload_specs.ConsumeBenchSpec):
            return spec.consumer_group or None
        if isinstance(spec, workload_specs.RoundTripWorkloadSpec):
            return f"round-trip-consumer-group-{self.id}"
        return None

    def end_ms(self) -> int:
        """When it is over at the latest."""
        return self.parsed.end_ms

    def put_off(self, by_ms: int) -> "WorkloadTask":
        """The same task, later."""
        start_ms = self.parsed.start_ms + by_ms
        return WorkloadTask(self.id, {**self.spec, "startMs": start_ms})


def workload_task(task_id: str, spec: TaskSpec, origin: str) -> WorkloadTask | None:
    """The workload that a task is; None for a task of another kind.

    An external command that is given the spec of a workload, as `workload_process` is, is that
    workload: on the node, and at the time, of the command.

    Raises:
        ScenarioError: the workload asks for what virtual time does not have.
    """
    if isinstance(spec, workload_specs.ExternalCommandSpec):
        spec = _commanded(spec, origin)
    if not isinstance(spec, WORKLOADS):
        return None
    if isinstance(spec, workload_specs.ProduceBenchSpec) and spec.transaction_generator is not None:
        raise ScenarioError(
            f"{origin}: transactionGenerator: workloads have no transactions in virtual time: "
            "leave it out"
        )
    nodes = target_nodes(spec, Topology({}))
    if not nodes or "" in nodes:
        raise ScenarioError(f"{origin}: name the node that the workload runs on")
    return WorkloadTask(task_id, jackson.tree(spec))


def _commanded(spec: workload_specs.ExternalCommandSpec, origin: str) -> TaskSpec:
    refusal = (
        f"{origin}: a command has no effect in virtual time, unless its workload is the spec of "
        "one of Kafka's workloads"
    )
    if not isinstance(spec.workload, dict) or "class" not in spec.workload:
        raise ScenarioError(refusal)
    inner = WorkloadTask("", spec.workload).parsed
    if not isinstance(inner, WORKLOADS):
        raise ScenarioError(refusal)
    own = _on_node(inner, spec.command_node)
    return msgspec.structs.replace(own, start_ms=spec.start_ms, duration_ms=spec.duration_ms)


def _on_node(spec: TaskSpec, node: str) -> TaskSpec:
    """The workload on one node."""
    match spec:
        case workload_specs.ConnectionStressSpec():
            return msgspec.structs.replace(spec, client_node=(node,))
        case workload_specs.ConsumeBenchSpec():
            return msgspec.structs.replace(spec, consumer_node=node)
        case workload_specs.ProduceBenchSpec() | workload_specs.ConfigurableProducerSpec():
            return msgspec.structs.replace(spec, producer_node=node)
        case _:
            return msgspec.structs.replace(spec, client_node=node)


def process_names(tasks: Iterable[WorkloadTask]) -> list[str]:
    """The processes of workloads, in the order of the tasks and of their nodes' names."""
    return [process for task in tasks for process in task.processes().values()]
