"""Interface of a target for cases: requests and replies, time, and optional capabilities.

Bodies are Kafka's own JSON: the field names and the versions of its message schemas, bytes as
base64. A target over the wire has only requests, replies and waiting; all other operations are
named by a capability, and a case that needs a missing one is skipped.
"""

from enum import StrEnum, unique
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from coordinator_sim.errors import ConfigError, CoordinatorSimError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.api_versions import recorded_versions
from coordinator_sim.kafka.profiles import profile_named

Json = dict[str, Any]


@unique
class Capability(StrEnum):
    """Optional operations of a target besides requests, replies and waiting."""

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
    CONSUMER_GROUPS = "consumer groups (KIP-848)"
    FAILING_ASSIGNOR = "a server-side assignor that fails"
    SHARE_GROUPS = "share groups (KIP-932)"
    STREAMS_GROUPS = "streams groups (KIP-1071)"
    RECORDS = "records, and share partitions that deliver them"


def has_groups(capability: Capability, profile: str) -> bool:
    """Whether a Kafka has the groups that a capability names; True of any other capability."""
    known = profile_named(profile)
    match capability:
        case Capability.CONSUMER_GROUPS:
            return known.has_coordinator_runtime
        case Capability.SHARE_GROUPS:
            return known.share_groups
        case Capability.STREAMS_GROUPS:
            return ApiKey.STREAMS_GROUP_HEARTBEAT in recorded_versions(known).ranges
        case _:
            return True


class Unsupported(CoordinatorSimError):
    """The target cannot do what a case needs.

    Args:
        message: What is missing.
        unlock: Setting, as `name=value`, or right with which a broker could do it; empty where
            neither helps.
    """

    def __init__(self, message: str, unlock: str = "") -> None:
        super().__init__(message, unlock)
        self.unlock = unlock

    def __str__(self) -> str:
        """Return the message."""
        return str(self.args[0])


class MalformedAnswer(CoordinatorSimError):
    """An answer that is no message of its version; the text holds its bytes."""


class ConnectionEnded(CoordinatorSimError):
    """The broker closed a connection with a pending request; the message names it."""


class World(Struct, frozen=True, kw_only=True):
    """The broker that a case starts with.

    Args:
        profile: Kafka it should behave like.
        settings: Broker properties by Kafka's names.
        asked: Those of the settings that the case is about; the others let it run quickly.
        partitions: Number of partitions of the offsets topic.
        topics: Partition counts; None allows commits to any topic.
        trace: Whether to trace a target that can be traced.
        switches: Switches of the profile, set by hand: a Kafka between those with a profile.
        started: Whether its coordinator accepts requests before it is told to start.
        records: Whether records are produced and delivered, which takes a whole broker.
    """

    profile: str
    settings: dict[str, str]
    asked: frozenset[str] = frozenset()
    partitions: int = 50
    topics: dict[str, int] | None = None
    trace: bool = False
    switches: tuple[str, ...] = ()
    started: bool = True
    records: bool = False


class Call(Struct, frozen=True, kw_only=True):
    """One request.

    Args:
        call_id: Id of the request in its reply; from 1, growing.
        connection: Requests of one connection are answered in order; by default each has its own.
    """

    call_id: int
    api: str
    version: int
    data: Json
    client_id: str = "client"
    connection: str = ""


class Answer(Struct, frozen=True):
    """The reply to a call, and the instant it was sent."""

    call_id: int
    at_ms: int
    data: Json


class Outcome(Struct, frozen=True):
    """Effects of an operation, in order.

    Args:
        answers: Answers of every request that completed meanwhile, parked ones too.
        records: Appended records in Kafka's JSON; empty without `Capability.LOG`.
    """

    answers: tuple[Answer, ...] = ()
    records: tuple[Json, ...] = ()


class GroupView(Struct, frozen=True, kw_only=True):
    """A group as the target shows it; None for fields that it does not show."""

    state: str
    protocol_type: str | None = None
    member_ids: tuple[str, ...] | None = None
    generation_id: int | None = None
    leader: str | None = None
    pending_ids: tuple[str, ...] | None = None


def view_of(group: Json) -> GroupView | None:
    """Return a group as an answer to DescribeGroups shows it."""
    state = group["groupState"]
    if state == "Dead":
        return None
    return GroupView(
        state="AwaitingSync" if state == "CompletingRebalance" else state,
        protocol_type=group["protocolType"],
        member_ids=tuple(member["memberId"] for member in group["members"]),
    )


class Target(Protocol):
    """A broker under test; `start` replaces it by a new, empty one."""

    @property
    def name(self) -> str:
        """Name in reports."""
        ...

    @property
    def delay_ms(self) -> int:
        """How long a fresh group waits for more members when a script does not say; 0 as a rule."""
        ...

    def offers(self, capability: Capability) -> bool:
        """Whether the operations of that capability work."""
        ...

    def newest(self, api: str, most: int) -> int:
        """Return the newest version that it offers, up to a bound; the bound if it does not say."""
        ...

    def start(self, world: World) -> None:
        """Discard everything and become a new broker that leads every offsets partition.

        Raises:
            Unsupported: the target cannot be that Kafka, or has no such settings.
        """
        ...

    def call(self, call: Call) -> Outcome:
        """Send a request; its answer may come with this or with a later operation."""
        ...

    def advance(self, ms: int, *, early: bool = False) -> Outcome:
        """Let that many milliseconds pass.

        Args:
            ms: How many.
            early: Where time is real: whether to end rather before that instant than after it.
        """
        ...

    def late(self, since_s: float) -> Outcome | None:
        """Wait a little for what is wanted and did not come; None when it is too late for that.

        Where time is moved by hand nothing is late.

        Args:
            since_s: When it was first missed, on the clock of `time.monotonic`.
        """
        ...

    def view(self, group_id: str) -> GroupView | None:
        """Return the group's present state; None when the group does not exist."""
        ...

    def operate(self, operation: Json) -> Outcome:
        """Run an operation of a capability, as an op of the line protocol.

        Raises:
            Unsupported: the op does not exist, or not with these fields.
        """
        ...

    def partition_of(self, group_id: str) -> int:
        """Return the offsets partition of a group."""
        ...

    def topic_ids(self) -> dict[str, str]:
        """Return the id of every topic by its name, as Kafka's JSON has it.

        Raises:
            Unsupported: the target does not tell them.
        """
        ...


class Declared(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user's declaration of an endpoint, in a TOML file.

    Args:
        name: Name in results; by default its address.
        settings: Broker settings by Kafka's names, where the endpoint does not report them.
        lacks: Ids of cases that it need not pass, with the reasons.
        newest: API by Kafka's name -> newest version to send where a script does not insist, for
            endpoints that offer more than they can read.
    """

    name: str = ""
    settings: dict[str, str | int | bool] = {}
    lacks: dict[str, str] = {}
    newest: dict[str, int] = {}


def read_declared(path: Path) -> Declared:
    """Return what a TOML file says of an endpoint.

    Raises:
        ConfigError: the file is no such file.
    """
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Declared)
    except (msgspec.DecodeError, OSError) as error:
        raise ConfigError(f"{path}: {error}") from None
