"""A streams group: what its records say, and what follows from them.

What the log says changes by the replay of records alone, on the timeline of the offsets partition.
Beside it a group has what heartbeats leave behind and no record holds: its configured topology,
where its members answer queries, how far their copies are.

Source: kafka 4.4, group-coordinator/.../streams/StreamsGroup.java.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, unique
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.common.timeline import (
    LATEST,
    Timeline,
    TimelineTable,
    TimelineValue,
)
from coordinator_sim.coordinator.epoch_group import (
    AssignmentEpochs,
    EpochGroup,
    GroupEpochs,
    RecordTypes,
)
from coordinator_sim.coordinator.streams.member import (
    NO_TOPOLOGY_EPOCH,
    StreamsGroupMember,
    with_assignment,
    with_metadata,
)
from coordinator_sim.coordinator.streams.reconciliation import TaskOwners
from coordinator_sim.coordinator.streams.tasks import (
    NOTHING_HELD,
    NOTHING_WANTED,
    HeldTasks,
    Tasks,
    sorted_epochs,
    sorted_tasks,
    tasks_from,
)
from coordinator_sim.coordinator.streams.topology import ConfiguredTopology, Topology, topology_from
from coordinator_sim.kafka.orders.iteration_order import java_string_key
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.streams_group_heartbeat import EndpointToPartitions
from coordinator_sim.messages.streams_group_records import (
    KeyValue,
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    TaskIds,
)
from coordinator_sim.trace.epoch_records import STREAMS

NOT_REFINED: Final = -1
"""Epoch of a target that no heartbeat has gone towards yet."""
NO_PROCESS: Final[frozenset[str]] = frozenset()


@unique
class StreamsGroupState(Enum):
    """The states of a group by their names on the wire; Dead is never entered."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class StreamsGroupEpochs(GroupEpochs, frozen=True, kw_only=True):
    """The epochs of a streams group; its hash is of the topics that its topology needs.

    Args:
        validated_topology_epoch: Of the topology whose topics are as they must be.
        settings: Of the assignment, by name, as they were when the epoch was written.
        topology: What the group runs.
        state: What follows from all of it.
    """

    validated_topology_epoch: int = NO_TOPOLOGY_EPOCH
    settings: Mapping[str, str] = {}
    topology: Topology | None = None
    state: StreamsGroupState = StreamsGroupState.EMPTY


class TaskOffsets(Struct, frozen=True):
    """How far the copies of a member are, and how far they could be, by subtopology and number."""

    offsets: Mapping[str, Mapping[int, int]] = {}
    end_offsets: Mapping[str, Mapping[int, int]] = {}


NO_OFFSETS: Final = TaskOffsets()


class Refined(Struct, frozen=True):
    """What members went towards at an epoch of the target."""

    epoch: int = NOT_REFINED
    targets: Mapping[str, Tasks] = {}


class StreamsGroup(EpochGroup[StreamsGroupMember, Tasks, StreamsGroupEpochs]):
    """One streams group.

    Args:
        timeline: Of the offsets partition; a group that is not in its table yet has its own.
        group_id: The group.
        profile: Of the coordinator.

    Attributes:
        shutdown_member_id: Who asked the whole application to stop; no record tells.
        endpoint_epoch: Grows whenever a member answers queries elsewhere; no record tells.
        endpoints: Of members, as they were last told.
        task_offsets: Of members, as they were last reported.
    """

    group_type: ClassVar = STREAMS
    session_setting: ClassVar = "group_streams_session_timeout_ms"
    no_target: ClassVar = NOTHING_WANTED
    record_types: ClassVar = RecordTypes(
        group_key=StreamsGroupMetadataKey,
        target_epoch_key=StreamsGroupTargetAssignmentMetadataKey,
        target_epoch_value=StreamsGroupTargetAssignmentMetadataValue,
        member_key=StreamsGroupMemberMetadataKey,
        target_key=StreamsGroupTargetAssignmentMemberKey,
        assignment_key=StreamsGroupCurrentMemberAssignmentKey,
        new_member=lambda member_id: StreamsGroupMember(member_id=member_id, process_id=None),
        with_metadata=with_metadata,
        with_assignment=with_assignment,
        nothing={"assigned": NOTHING_HELD, "pending_revocation": NOTHING_HELD},
    )
    old_txn_commit_needs_topics: ClassVar = False
    __slots__ = (
        "_active",
        "_configured",
        "_refined",
        "_standby",
        "_timeline",
        "_warmup",
        "endpoint_epoch",
        "endpoints",
        "shutdown_member_id",
        "task_offsets",
    )

    def __init__(self, timeline: Timeline, group_id: str, profile: Profile) -> None:
        epoch = profile.streams_first_epoch
        first = StreamsGroupEpochs(
            group_epoch=epoch,
            assignment_epoch=epoch,
            validated_topology_epoch=profile.streams_first_validated_epoch,
        )
        super().__init__(timeline, group_id, first, profile)
        self._timeline = timeline
        self._active = TimelineTable[tuple[str, int], str](timeline, _no_order)
        self._standby = TimelineTable[tuple[str, int], set[str]](timeline, _no_order)
        self._warmup = TimelineTable[tuple[str, int], set[str]](timeline, _no_order)
        self._configured = TimelineValue[ConfiguredTopology | None](timeline, None)
        self._refined = TimelineValue(timeline, Refined())
        self.shutdown_member_id: str | None = None
        self.endpoint_epoch = 0
        self.endpoints: dict[str, EndpointToPartitions] = {}
        self.task_offsets: dict[str, TaskOffsets] = {}

    # -- questions -------------------------------------------------------------------------

    @property
    def state(self) -> StreamsGroupState:
        """The current state."""
        return self._epochs.value.state

    def configured(self, position: int = LATEST) -> ConfiguredTopology | None:
        """The topology with the topics that there are, as a reader at that log position sees it."""
        return self._configured.as_of(position) if position != LATEST else self._configured.value

    @property
    def refined(self) -> Refined:
        """What members went towards last."""
        return self._refined.value

    def offsets_of(self, member_id: str) -> TaskOffsets:
        """How far the copies of a member are."""
        return self.task_offsets.get(member_id, NO_OFFSETS)

    @property
    def has_assignment_epochs(self) -> bool:
        """Whether tasks can be told by their topics: there is a topology."""
        return self.epochs.topology is not None

    def assignment_epochs(self, member_id: str) -> AssignmentEpochs:
        """Reads the epochs at which a member got the active tasks that read topics."""
        topology, member = self.epochs.topology, self.members.entries[member_id]
        subtopologies = {} if topology is None else topology.source_topics()
        held, pending = member.assigned.active, member.pending_revocation.active

        def epoch_of(topic: str, _topic_id: bytes, partition: int) -> int | None:
            subtopology = subtopologies.get(topic)
            if subtopology is None:
                return None
            name = subtopology.subtopology_id
            epoch = held.get(name, {}).get(partition)
            return pending.get(name, {}).get(partition) if epoch is None else epoch

        return epoch_of

    def owners(self) -> TaskOwners:
        """Which processes have a task."""
        active, standby, warmup = self._active.entries, self._standby, self._warmup
        return TaskOwners(
            active=lambda name, number: active.get((name, number)),
            standby=lambda name, number: standby.get((name, number)) or NO_PROCESS,
            warmup=lambda name, number: warmup.get((name, number)) or NO_PROCESS,
        )

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether its topology reads that topic. Source: StreamsGroup.isSubscribedToTopic."""
        epochs = self.epochs
        if epochs.state is StreamsGroupState.EMPTY or epochs.topology is None:
            return False
        return topic in epochs.topology.source_topics()

    # -- what no record tells ----------------------------------------------------------------

    def remember_from(self, end_offset: int) -> None:
        """Changes that come before the append of a heartbeat are taken back with it."""
        self._timeline.written = end_offset
        self._timeline.remember()

    def configure(self, configured: ConfiguredTopology) -> None:
        """Keep the topology with the topics that there are."""
        self._configured.value = configured
        self.endpoints.clear()

    def refine(self, refined: Refined) -> None:
        """Keep what members went towards."""
        self._refined.value = refined

    # -- records ---------------------------------------------------------------------------

    def member_record(self, member: StreamsGroupMember) -> LogRecord:
        """Make the record of a member's metadata: client, topology, process, endpoint and tags."""
        tags = member.client_tags
        ordered = sorted(tags, key=java_string_key)
        value = StreamsGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id or "",
            user_endpoint=member.user_endpoint,
            client_tags=tuple(KeyValue(key, tags[key]) for key in ordered),
        )
        return LogRecord(StreamsGroupMemberMetadataKey(self.group_id, member.member_id), value)

    def group_record(self, epochs: StreamsGroupEpochs) -> LogRecord:
        """Make the record of another epoch of the group."""
        settings = epochs.settings
        ordered = sorted(settings, key=java_string_key)
        value = StreamsGroupMetadataValue(
            epoch=epochs.group_epoch,
            metadata_hash=epochs.metadata_hash,
            validated_topology_epoch=epochs.validated_topology_epoch,
            last_assignment_configs=tuple(
                LastAssignmentConfig(key, settings[key]) for key in ordered
            ),
        )
        return LogRecord(StreamsGroupMetadataKey(self.group_id), value)

    def epoch_record(self) -> LogRecord:
        """Make the record of the current epoch."""
        return self.group_record(self.epochs)

    def topology_record(self, value: StreamsGroupTopologyValue) -> LogRecord:
        """Make the record of the topology that the group runs."""
        return LogRecord(StreamsGroupTopologyKey(self.group_id), value)

    def target_record(self, member_id: str, target: Tasks) -> LogRecord:
        """Make the record of what a member shall have."""
        value = StreamsGroupTargetAssignmentMemberValue(
            sorted_tasks(target.active), sorted_tasks(target.standby), sorted_tasks(target.warmup)
        )
        return LogRecord(StreamsGroupTargetAssignmentMemberKey(self.group_id, member_id), value)

    def assignment_record(self, member: StreamsGroupMember) -> LogRecord:
        """Make the record of what a member has."""
        has, gives_up = _stored(member.assigned), _stored(member.pending_revocation)
        value = StreamsGroupCurrentMemberAssignmentValue(
            member.member_epoch, member.previous_member_epoch, int(member.state), *has, *gives_up
        )
        key = StreamsGroupCurrentMemberAssignmentKey(self.group_id, member.member_id)
        return LogRecord(key, value)

    def tombstones(self, renamed: Mapping[str, str] = {}) -> tuple[LogRecord, ...]:
        """Remove the group with all that is in it; its topology goes last."""
        last = LogRecord(StreamsGroupTopologyKey(self.group_id), None)
        return (*super().tombstones(renamed), last)

    def _target_from(self, value: StreamsGroupTargetAssignmentMemberValue) -> Tasks:
        return Tasks(
            tasks_from(value.active_tasks),
            tasks_from(value.standby_tasks),
            tasks_from(value.warmup_tasks),
        )

    def _replay_epoch(self, value: StreamsGroupMetadataValue) -> None:
        changed = replace(
            self.epochs,
            group_epoch=value.epoch,
            metadata_hash=value.metadata_hash,
            validated_topology_epoch=value.validated_topology_epoch,
            settings={each.key: each.value for each in value.last_assignment_configs or ()},
        )
        self._update_state(changed)

    def _replay_other(self, key: Any, value: Any) -> None:  # noqa: ANN401, ARG002 - as in the base
        """Let the group run the topology of a record."""
        topology = None if value is None else topology_from(value)
        self._update_state(replace(self.epochs, topology=topology))

    def check_removable(self) -> None:
        """Source: GroupMetadataManager.replay of StreamsGroupMetadata."""
        self.check_no_members()
        self.check_no_target_epoch()

    # -- inside ----------------------------------------------------------------------------

    def _replace(self, old: StreamsGroupMember | None, new: StreamsGroupMember | None) -> None:
        """Source: StreamsGroup.updateMember and removeMember."""
        if old is not None:
            self._release(old)
        if new is not None and new.process_id is not None:
            self._take(new.assigned, new.process_id)
            self._take(new.pending_revocation, new.process_id)
        count = self._counted(old, new)
        self._update_state(replace(self.epochs, unreconciled_count=count))
        for member in (old, new):
            if member is not None:
                self.endpoints.pop(member.member_id, None)
        if old is not None and new is None:
            self.task_offsets.pop(old.member_id, None)

    def _release(self, member: StreamsGroupMember) -> None:
        """Free what a member has. Source: StreamsGroup.removeTaskProcessIds.

        QUIRK: the sets of processes are no part of the timeline; what was freed in vain stays free.
        """
        process_id = member.process_id
        for held in (member.assigned, member.pending_revocation):
            for task in _listed(held.active):
                if self._active.entries.get(task) == process_id:
                    self._active.remove(task)
            for table, task in self._copies(held):
                processes = table.get(task)
                if processes is not None and process_id is not None:
                    processes.discard(process_id)

    def _take(self, held: HeldTasks, process_id: str) -> None:
        """Note which process has these. Source: StreamsGroup.addTaskProcessId."""
        for task in _listed(held.active):
            self._active.put(task, process_id)
        for table, task in self._copies(held):
            processes = table.get(task)
            if processes is None:
                processes = set()
                table.put(task, processes)
            processes.add(process_id)

    def _copies(
        self, held: HeldTasks
    ) -> Iterator[tuple[TimelineTable[tuple[str, int], set[str]], tuple[str, int]]]:
        """Every copy, with the table that says which processes have it."""
        for table, tasks in ((self._standby, held.standby), (self._warmup, held.warmup)):
            for task in _listed(tasks):
                yield table, task

    def _update_state(self, epochs: StreamsGroupEpochs) -> None:
        """Set the epochs and the state. Source: StreamsGroup.maybeUpdateGroupState."""
        topology = epochs.topology
        if not self.members.entries:
            state = StreamsGroupState.EMPTY
            self.shutdown_member_id = None
        elif topology is None or topology.epoch != epochs.validated_topology_epoch:
            state = StreamsGroupState.NOT_READY
        elif epochs.group_epoch > epochs.assignment_epoch:
            state = StreamsGroupState.ASSIGNING
        elif epochs.unreconciled_count:
            state = StreamsGroupState.RECONCILING
        else:
            state = StreamsGroupState.STABLE
        self._epochs.value = epochs if epochs.state is state else replace(epochs, state=state)


def _listed(tasks: Mapping[str, Iterable[int]]) -> Iterator[tuple[str, int]]:
    return ((name, number) for name, numbers in tasks.items() for number in numbers)


def _stored(
    held: HeldTasks,
) -> tuple[tuple[TaskIds, ...], tuple[TaskIds, ...], tuple[TaskIds, ...]]:
    return (
        sorted_epochs(held.active, with_epochs=True),
        sorted_tasks(held.standby),
        sorted_tasks(held.warmup),
    )


def _no_order(_key: tuple[str, int]) -> int:
    """The hash of a key whose order shows nowhere."""
    return 0
