"""What a target offers to a case: requests and replies, time, and as far as it can more.

Bodies are Kafka's own JSON: the field names and the versions of its message schemas, bytes as
base64. Requests, replies and waiting are the whole of what a target over the wire can do; all
other operations are named by a capability, and a case that wants one is skipped where it lacks.
"""

from enum import StrEnum, unique
from typing import Any, Protocol

from msgspec import Struct

from coordinator_sim.errors import CoordinatorSimError

Json = dict[str, Any]


@unique
class Capability(StrEnum):
    """What a target may offer besides requests, replies and waiting."""

    CLOCK = "exact time"
    LOG = "the records that were appended"
    FAULTS = "append faults and a held high watermark"
    LIFE = "a coordinator that is started and stopped"
    FAILOVER = "elections, resignations, records of another leader"
    MARKERS = "transaction markers"
    TOPICS = "topics that come and go"
    CLUSTER = "a cluster that tells where groups are coordinated"
    LOADING = "a load that is under way"
    INSIDE = "a look inside the coordinator"


class Unsupported(CoordinatorSimError):
    """The target cannot do what a case asks; the message names what."""


class World(Struct, frozen=True, kw_only=True):
    """The broker that a case starts with.

    Args:
        profile: The Kafka it should behave like.
        settings: Broker properties by Kafka's names.
        partitions: Of the offsets topic.
        topics: Partition counts; None lets any topic be committed to.
        trace: Whether a target that can be traced is.
        switches: Of the profile, set by hand: a Kafka between those that have a profile.
        started: Whether its coordinator takes requests before it is told to start.
    """

    profile: str
    settings: dict[str, str]
    partitions: int = 50
    topics: dict[str, int] | None = None
    trace: bool = False
    switches: tuple[str, ...] = ()
    started: bool = True


class Call(Struct, frozen=True, kw_only=True):
    """One request.

    Args:
        call_id: Names the request in its reply; from 1, growing.
        connection: Requests of one connection are answered in order; by default each has its own.
    """

    call_id: int
    api: str
    version: int
    data: Json
    client_id: str = "client"
    connection: str = ""


class Answer(Struct, frozen=True):
    """The reply to a call, and the instant it left."""

    call_id: int
    at_ms: int
    data: Json


class Outcome(Struct, frozen=True):
    """What an operation caused, in order.

    Args:
        answers: Of every request that completed meanwhile, parked ones too.
        records: Appended records in Kafka's JSON; empty without `Capability.LOG`.
    """

    answers: tuple[Answer, ...] = ()
    records: tuple[Json, ...] = ()


class GroupView(Struct, frozen=True, kw_only=True):
    """A group as the target shows it; None stands for what it does not show."""

    state: str
    protocol_type: str | None = None
    member_ids: tuple[str, ...] | None = None
    generation_id: int | None = None
    leader: str | None = None
    pending_ids: tuple[str, ...] | None = None


class Target(Protocol):
    """One broker under test; `start` makes it anew."""

    @property
    def name(self) -> str:
        """What a report calls it."""
        ...

    def offers(self, capability: Capability) -> bool:
        """Whether the operations of that capability work."""
        ...

    def start(self, world: World) -> None:
        """Forget everything and be a new broker that leads every offsets partition.

        Raises:
            Unsupported: it cannot be that Kafka, or has no such settings.
        """
        ...

    def call(self, call: Call) -> Outcome:
        """Send a request; its answer may come with this or with a later operation."""
        ...

    def advance(self, ms: int) -> Outcome:
        """Let that many milliseconds pass."""
        ...

    def view(self, group_id: str) -> GroupView | None:
        """The group as it stands; None when there is none."""
        ...

    def operate(self, operation: Json) -> Outcome:
        """Do what a capability names, as an op of the line protocol.

        Raises:
            Unsupported: there is no such op, or not with these fields.
        """
        ...

    def partition_of(self, group_id: str) -> int:
        """The offsets partition of a group."""
        ...
