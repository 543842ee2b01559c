"""Members of a group with epochs, built from its records, and what they hold in a trace.

Assignments have the bytes that a leader of the classic protocol would send, so that every reader of
a trace decodes them alike. Topics have their names where those are known. A task of a streams group
is written like a partition, under its subtopology's name; only active tasks are, because a copy is
no owner.

Source: kafka 4.4, ConsumerGroupMemberMetadataValue.json and
ConsumerGroupCurrentMemberAssignmentValue.json, and those of share and streams groups;
modern/MemberState.java and streams/MemberState.java.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.resources import StreamsTaskId, TopicPartition
from coordinator_sim.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue,
)
from coordinator_sim.messages.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataValue,
)
from coordinator_sim.trace.epoch_records import STREAMS
from coordinator_sim.trace.events import TraceEvent

AWAY_EPOCH: Final = -2
"""Epoch of a static member that left for a while."""
STABLE: Final = "Stable"

_STATES: Final = {0: STABLE, 1: "UnrevokedPartitions", 2: "UnreleasedPartitions"}
"""How far a member has come, by the number in its record; other numbers are `Unknown`."""
_STATES_OF_STREAMS: Final = {1: STABLE, 2: "UnrevokedTasks", 3: "UnreleasedTasks"}
_UNKNOWN: Final = "Unknown"


class OfTopic(Protocol):
    """Partitions of one topic, in a record or an answer."""

    @property
    def topic_id(self) -> bytes:
        """16 bytes."""
        ...

    @property
    def partitions(self) -> tuple[int, ...]:
        """Their numbers."""
        ...


class OfSubtopology(Protocol):
    """Tasks of one subtopology, in a record or an answer."""

    @property
    def subtopology_id(self) -> str:
        """Its name."""
        ...

    @property
    def partitions(self) -> tuple[int, ...]:
        """Numbers of the tasks."""
        ...


Held = Mapping[bytes | str, tuple[int, ...]]
"""Partitions by topic id, tasks by subtopology; ascending."""
TopicName = Callable[[bytes], str]
"""The name of a topic id."""

NONE_HELD: Final[Held] = {}


class Part(Struct, frozen=True):
    """What a member has, or shall have.

    Args:
        owned: Partitions; of a streams group the active tasks.
        standby: Tasks of which it keeps a copy.
        warmup: Tasks of which it makes one.
    """

    owned: Held = NONE_HELD
    standby: Held = NONE_HELD
    warmup: Held = NONE_HELD

    def lacking(self, other: "Part") -> int:
        """The number of this part's resources that the other part lacks in the same role."""
        return sum(
            len(set(numbers) - set(there.get(name, ())))
            for here, there in (
                (self.owned, other.owned),
                (self.standby, other.standby),
                (self.warmup, other.warmup),
            )
            for name, numbers in here.items()
        )

    def copies(self, prefix: str = "") -> dict[str, str]:
        """Its copies as attributes of an event, each a list of tasks with blanks between."""
        told = {"standby": self.standby, "warmup": self.warmup}
        return {f"{prefix}{role}": _tasks(found) for role, found in told.items() if found}


NOTHING: Final = Part()
MetadataValue = (
    ConsumerGroupMemberMetadataValue
    | ShareGroupMemberMetadataValue
    | StreamsGroupMemberMetadataValue
)
StepValue = (
    ConsumerGroupCurrentMemberAssignmentValue
    | ShareGroupCurrentMemberAssignmentValue
    | StreamsGroupCurrentMemberAssignmentValue
)
PartValue = (
    ConsumerGroupTargetAssignmentMemberValue
    | ShareGroupTargetAssignmentMemberValue
    | StreamsGroupTargetAssignmentMemberValue
)
TargetValue = (
    ConsumerGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
)


class SeenMember(Struct, frozen=True, kw_only=True):
    """A member of a group with epochs, built from its records.

    Args:
        topology_epoch: Epoch of the topology that a streams member runs.
        process: Process, rack and tags of a streams member.
        epoch: Member epoch; 0 before its first, `AWAY_EPOCH` of a static member that is away.
        state: State of its reconciliation, in Kafka's words.
        assigned: Partitions or tasks that it has and may use.
        revoking: Partitions or tasks that it has and must give up.
    """

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str | None = None
    assignor: str | None = None
    rebalance_timeout_ms: int = -1
    is_classic: bool = False
    topology_epoch: int | None = None
    process: tuple[object, ...] = ()
    endpoint: object = None
    epoch: int = 0
    previous_epoch: int = -1
    state: str = STABLE
    assigned: Part = NOTHING
    revoking: Part = NOTHING

    def with_metadata(self, value: MetadataValue) -> "SeenMember":
        """The member as its record describes it."""
        known = replace(self, client_id=value.client_id, client_host=value.client_host)
        if isinstance(value, ShareGroupMemberMetadataValue):
            return replace(known, topics=tuple(sorted(value.subscribed_topic_names)))
        known = replace(
            known,
            instance_id=value.instance_id or None,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
        )
        if isinstance(value, StreamsGroupMemberMetadataValue):
            return replace(
                known,
                topology_epoch=value.topology_epoch,
                process=(value.process_id, value.rack_id, value.client_tags),
                endpoint=value.user_endpoint,
            )
        return replace(
            known,
            topics=tuple(sorted(value.subscribed_topic_names)),
            regex=value.subscribed_topic_regex or None,
            assignor=value.server_assignor or None,
            is_classic=value.classic_member_metadata is not None,
        )

    def with_assignment(self, value: StepValue) -> "SeenMember":
        """The member with what its record says that it has."""
        states, revoking = _STATES, NOTHING
        if isinstance(value, StreamsGroupCurrentMemberAssignmentValue):
            states = _STATES_OF_STREAMS
            assigned = tasks_part(value.active_tasks, value.standby_tasks, value.warmup_tasks)
            revoking = tasks_part(
                value.active_tasks_pending_revocation,
                value.standby_tasks_pending_revocation,
                value.warmup_tasks_pending_revocation,
            )
        else:
            assigned = Part(held(value.assigned_partitions))
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            revoking = Part(held(value.partitions_pending_revocation))
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=states.get(value.state, _UNKNOWN),
            assigned=assigned,
            revoking=revoking,
        )

    def is_at(self, epoch: int) -> bool:
        """Whether it has reached the target of that epoch."""
        return self.state == STABLE and self.epoch == epoch

    def names(self) -> dict[str, Any]:
        """Columns of an event that name the member."""
        return {
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "client_id": self.client_id or None,
            "client_host": self.client_host or None,
        }

    def subscription(self) -> bytes | None:
        """The member's topics as subscription bytes; None if it also has a regex or a topology.

        An expression adds to the topics; a streams member has a topology in place of topics.
        """
        if self.regex is not None or self.topology_epoch is not None:
            return None
        return encode_subscription(Subscription(topics=self.topics))

    def wishes(self) -> dict[str, str]:
        """Event attributes for what a member requests besides topics: regex, assignor, topology."""
        epoch = self.topology_epoch
        wishes = {
            "regex": self.regex,
            "assignor": self.assignor,
            "protocol": "classic" if self.is_classic else None,
            "topology_epoch": None if epoch is None else str(epoch),
            "process_id": str(self.process[0]) if self.process else None,
        }
        return {name: value for name, value in wishes.items() if value is not None}


def held(topics: Iterable[OfTopic]) -> Held:
    """Partitions of a record by topic id; topics without any are left out."""
    return {each.topic_id: tuple(sorted(each.partitions)) for each in topics if each.partitions}


def tasks_part(
    active: Iterable[OfSubtopology],
    standby: Iterable[OfSubtopology],
    warmup: Iterable[OfSubtopology],
) -> Part:
    """Tasks of a record or an answer."""
    return Part(_tasks_held(active), _tasks_held(standby), _tasks_held(warmup))


def part_of(value: PartValue) -> Part:
    """What a member shall have."""
    if isinstance(value, StreamsGroupTargetAssignmentMemberValue):
        return tasks_part(value.active_tasks, value.standby_tasks, value.warmup_tasks)
    return Part(held(value.topic_partitions))


def _tasks_held(tasks: Iterable[OfSubtopology]) -> Held:
    return {
        each.subtopology_id: tuple(sorted(each.partitions)) for each in tasks if each.partitions
    }


def _tasks(found: Held) -> str:
    return " ".join(
        StreamsTaskId(str(name), number).resource()
        for name, numbers in sorted((str(name), numbers) for name, numbers in found.items())
        for number in numbers
    )


def partitions_of(found: Held, name_of: TopicName) -> list[TopicPartition]:
    """Partitions by their topics' names, in the order of names and numbers; tasks likewise."""
    named = [
        (name if isinstance(name, str) else name_of(name), numbers)
        for name, numbers in found.items()
    ]
    return [TopicPartition(name, number) for name, numbers in sorted(named) for number in numbers]


def assignment_bytes(found: Held, name_of: TopicName) -> bytes:
    """Partitions, or active tasks, as the bytes of an assignment."""
    return encode_assignment(ConsumerAssignment(partitions=tuple(partitions_of(found, name_of))))


def resources_of(found: Held, name_of: TopicName) -> str:
    """Partitions as resources with blanks between, as the attribute `resources` has them."""
    if any(isinstance(name, str) for name in found):
        return _tasks(found)
    return " ".join(each.resource() for each in partitions_of(found, name_of))


def resources_in(assignment: bytes, protocol_type: str | None) -> list[str]:
    """What the bytes of an assignment name: active tasks of a streams group, or partitions.

    Raises:
        WireFormatError: They are not those of a consumer's assignment.
    """
    found = decode_assignment(assignment).partitions
    if protocol_type == STREAMS:
        return [StreamsTaskId(each.topic, each.partition).resource() for each in found]
    return [each.resource() for each in found]


def held_at_step(event: TraceEvent) -> list[str]:
    """What a member holds after a step: what it may use, and what it has to give up."""
    try:
        found = resources_in(event.assignment or b"", event.protocol_type)
    except WireFormatError:
        found = []
    return [*found, *event.attrs.get("revoking", "").split()]


def id_text(topic_id: bytes) -> str:
    """A topic id as Kafka prints it, in place of a name that is not known."""
    return urlsafe_b64encode(topic_id).decode().rstrip("=")
