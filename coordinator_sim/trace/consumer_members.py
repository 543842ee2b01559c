"""Members of a consumer group as its records tell of them, and what they hold in a trace's words.

Assignments have the bytes that a leader of the classic protocol would send, so that all readers of
a trace read them alike. Topics are called by their names where those are known.

Source: kafka 4.4, ConsumerGroupMemberMetadataValue.json and
ConsumerGroupCurrentMemberAssignmentValue.json; modern/MemberState.java.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.kafka.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription

AWAY_EPOCH: Final = -2
"""Epoch of a static member that left for a while."""

STATES: Final = {0: "Stable", 1: "UnrevokedPartitions", 2: "UnreleasedPartitions"}
"""How far a member has come, by the number in its record; other numbers are `Unknown`."""


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


Held = Mapping[bytes, tuple[int, ...]]
"""Partitions by topic id, ascending."""
TopicName = Callable[[bytes], str]
"""The name of a topic id."""

NONE_HELD: Final[Held] = {}


class SeenMember(Struct, frozen=True, kw_only=True):
    """A member as its records tell of it.

    Args:
        epoch: 0 until it was given one, `AWAY_EPOCH` of a static member that is away.
        state: Number of its state; see `STATES`.
        assigned: What it has and may use.
        revoking: What it has and must give up.
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
    epoch: int = 0
    previous_epoch: int = -1
    state: int = 0
    assigned: Held = NONE_HELD
    revoking: Held = NONE_HELD

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "SeenMember":
        """The member as its record describes it."""
        return replace(
            self,
            instance_id=value.instance_id or None,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=tuple(sorted(value.subscribed_topic_names)),
            regex=value.subscribed_topic_regex or None,
            assignor=value.server_assignor or None,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            is_classic=value.classic_member_metadata is not None,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "SeenMember":
        """The member with what its record says that it has."""
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=held(value.assigned_partitions),
            revoking=held(value.partitions_pending_revocation),
        )

    def is_at(self, epoch: int) -> bool:
        """Whether it has reached the target of that epoch."""
        return self.state == 0 and self.epoch == epoch

    def names(self) -> dict[str, Any]:
        """Columns of an event that name the member."""
        return {
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "client_id": self.client_id or None,
            "client_host": self.client_host or None,
        }

    def subscription(self) -> bytes | None:
        """Its topics as a subscription's bytes; None while an expression adds to them."""
        if self.regex is not None:
            return None
        return encode_subscription(Subscription(topics=self.topics))

    def wishes(self) -> dict[str, str]:
        """What it asks for beside topics, as attributes of an event."""
        wishes = {
            "regex": self.regex,
            "assignor": self.assignor,
            "protocol": "classic" if self.is_classic else None,
        }
        return {name: value for name, value in wishes.items() if value is not None}


def held(topics: Iterable[OfTopic]) -> Held:
    """Partitions of a record by topic id; topics without any are left out."""
    return {each.topic_id: tuple(sorted(each.partitions)) for each in topics if each.partitions}


def partitions_of(found: Held, name_of: TopicName) -> list[TopicPartition]:
    """Partitions by their topics' names, in the order of names and numbers."""
    named = [(name_of(topic_id), indexes) for topic_id, indexes in found.items()]
    return [TopicPartition(name, index) for name, indexes in sorted(named) for index in indexes]


def assignment_bytes(found: Held, name_of: TopicName) -> bytes:
    """Partitions as the bytes of an assignment."""
    return encode_assignment(ConsumerAssignment(partitions=tuple(partitions_of(found, name_of))))


def resources_of(found: Held, name_of: TopicName) -> str:
    """Partitions as resources with blanks between, as the attribute `resources` has them."""
    return " ".join(each.resource() for each in partitions_of(found, name_of))


def id_text(topic_id: bytes) -> str:
    """A topic id as Kafka prints it, in place of a name that is not known."""
    return urlsafe_b64encode(topic_id).decode().rstrip("=")
