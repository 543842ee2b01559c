"""The simulator as a target: the line protocol without a process, and a look inside."""

from collections.abc import Callable
from typing import Final

from conformance.targets.lines import LinesTarget
from conformance.targets.target import (
    Answer,
    Capability,
    GroupView,
    Json,
    Outcome,
    Unsupported,
)
from coordinator_sim.coordinator.group import Group
from coordinator_sim.errors import IllegalTransition
from coordinator_sim.harness.kafka_json.records import read_records
from coordinator_sim.harness.lines import Lines
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.records import LogKey, LogRecord
from coordinator_sim.protocol.states import GroupState


class SimulatorTarget(LinesTarget):
    """One broker of the simulator, as any Kafka it has a profile of."""

    def __init__(self) -> None:
        self._lines = Lines()
        super().__init__("simulator", self._lines, profile=None, capabilities=frozenset(Capability))

    def view(self, group_id: str) -> GroupView | None:
        """The group to its last field."""
        group = self._lines.harness.coordinator.group(group_id)
        if group is None:
            return None
        return GroupView(
            state=group.state.value,
            protocol_type=group.protocol_type or "",
            member_ids=tuple(group.members),
            generation_id=group.generation_id,
            leader=group.leader_id or "",
            pending_ids=tuple(group.pending_members),
        )

    def operate(self, operation: Json) -> Outcome:
        """An op of the line protocol, or one of our own: they change what no request can."""
        inside = _INSIDE.get(operation["op"])
        return super().operate(operation) if inside is None else inside(self, operation)

    # -- inside ----------------------------------------------------------------------------

    def _partition(self, operation: Json) -> int:
        return self._lines.harness.partition_of(operation["group"])

    def begin_load(self, operation: Json) -> Outcome:
        """A load of the group's partition that is under way."""
        harness = self._lines.harness
        harness.coordinator.begin_load(self._partition(operation), 9, harness.now_ms)
        return Outcome()

    def fail_load(self, operation: Json) -> Outcome:
        """That load ends with an error."""
        harness = self._lines.harness
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        harness.coordinator.finish_load(self._partition(operation), error, harness.now_ms)
        return Outcome()

    def force(self, operation: Json) -> Outcome:
        """A state that no request leads to."""
        self._group(operation).state = GroupState(operation["state"])
        return Outcome()

    def _group(self, operation: Json) -> Group:
        group = self._lines.harness.coordinator.group(operation["group"])
        if group is None:
            raise Unsupported(f"there is no group {operation['group']!r} to change")
        return group

    def transition(self, operation: Json) -> Outcome:
        """One step between two states: an answer says that it was made."""
        group = self._group(operation)
        group.state = GroupState(operation["before"])
        try:
            group._transition(GroupState(operation["after"]))  # noqa: SLF001 - the one door
        except IllegalTransition:
            return Outcome()
        return Outcome((Answer(0, self._lines.harness.now_ms, {}),))

    def compact(self, operation: Json) -> Outcome:
        """The log of the group's partition keeps the last record of each key, in its place."""
        harness, partition = self._lines.harness, self._partition(operation)
        last: dict[LogKey, LogRecord] = {}
        for batch in harness.log(partition):
            for record in batch.records:
                last.pop(record.key, None)
                last[record.key] = record
        harness.truncate(partition)
        harness.append(partition, tuple(last.values()))
        return Outcome()

    def append(self, operation: Json) -> Outcome:
        """Records of another leader, for a later election."""
        self._lines.harness.append(self._partition(operation), read_records(operation["records"]))
        return Outcome()


_INSIDE: Final[dict[str, Callable[[SimulatorTarget, Json], Outcome]]] = {
    "beginLoad": SimulatorTarget.begin_load,
    "failLoad": SimulatorTarget.fail_load,
    "force": SimulatorTarget.force,
    "transition": SimulatorTarget.transition,
    "compact": SimulatorTarget.compact,
    "append": SimulatorTarget.append,
}
