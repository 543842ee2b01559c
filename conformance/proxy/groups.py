"""What is remembered of groups: bounded, and only what certainly holds."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, TypeVar

from msgspec import Struct, field

from coordinator_sim_conformance.proxy.exchanges import NEVER, Exchange

GENERATIONS_KEPT: Final = 4
MEMBERS_KEPT: Final = 2_000
"""Of each group, those that were seen last; one more than a group usually has."""
PARTITIONS_KEPT: Final = 10_000

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class Recent(OrderedDict[_K, _V]):
    """A table of so many entries: the one that was put or touched longest ago goes."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def put(self, key: _K, value: _V) -> None:
        """Put an entry in, as the newest."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class Generation(Struct, kw_only=True):
    """A completed join phase, built from the answers that passed so far.

    A coordinator that loads its group from the log reuses the number of a generation that no member
    has synced: an answer belongs here if its request was sent before the first answer came.

    Args:
        first: Place of the first answer.
        last: Place of the last answer.
        protocol: Type and name of the protocol; the type is None where its version has none.
        answered: Answers, by member.
        told: The answer to the leader.
        handed_in: What the leader sent, once or again.
        confirmed: Whether the leader's SyncGroup was answered, so that the log has it.
        given: Answers to SyncGroup that are not judged yet.
        synced: Place of the first answer to a SyncGroup; then the generation is in the log.
    """

    number: int
    first: int
    last: int
    protocol: tuple[str | None, str | None]
    answered: dict[str, Exchange] = field(default_factory=dict)
    told: Exchange | None = None
    handed_in: list[Exchange] = field(default_factory=list)
    confirmed: bool = False
    given: list[Exchange] = field(default_factory=list)
    synced: int = NEVER


class Member(Struct, kw_only=True):
    """A member that was answered in a generation with a leader.

    Args:
        join_sent: Place of its last JoinGroup.
        told_at: Place of the answer to it.
        synced: Newest generation that it has synced in; `NEVER` before.
        synced_at: Place of the answer that said so.
    """

    join_sent: int
    told_at: int
    synced: int = NEVER
    synced_at: int = NEVER


class Floor(Struct, frozen=True):
    """The newest generation that was synced: its log entry stays, whoever coordinates.

    Args:
        generation: Its number.
        join_sent: Place of a JoinGroup that was answered with it.
        synced_at: Place of the answer to SyncGroup.
    """

    generation: int
    join_sent: int
    synced_at: int


class Gone(Struct, frozen=True):
    """An id that has ended, and the exchange that says so.

    Args:
        at: Place of the answer.
        instance_id: With a fenced id, the instance that another one has.
    """

    at: int
    exchange: Exchange
    instance_id: str | None = None


class Committed(Struct):
    """An offset that was sent.

    Args:
        acknowledged: Whether it was answered without error.
    """

    offset: int
    exchange: Exchange
    acknowledged: bool = False


class PartitionOffsets(Struct):
    """The offsets that one partition may have.

    Args:
        is_unsure: Whether too much is open to say anything.
    """

    sent: list[Committed] = field(default_factory=list)
    is_unsure: bool = False


class GroupModel:
    """One group."""

    def __init__(self) -> None:
        self.generations: Recent[int, Generation] = Recent(GENERATIONS_KEPT)
        self.members: Recent[str, Member] = Recent(MEMBERS_KEPT)
        self.gone: Recent[str, Gone] = Recent(MEMBERS_KEPT)
        self.floor: Floor | None = None
        self.offsets: Recent[tuple[str, int], PartitionOffsets] = Recent(PARTITIONS_KEPT)
        self.names_topics: bool | None = None
        """Whether its commits name topics, not ids; None before the first."""
        self.flagged: set[str] = set()
        """Rules whose break was told."""

    def generation_of(self, exchange: Exchange) -> Generation | None:
        """Return the generation that an answer to JoinGroup certainly belongs to; new if need be.

        None where it may be that of another attempt.
        """
        number: int = exchange.reply["generationId"]
        known = self.generations.get(number)
        if known is None:
            return self._begun(exchange)
        if exchange.sent < known.first:
            return known
        if exchange.member_id in known.answered and exchange.sent > known.synced > NEVER:
            return known
        is_listed = exchange.instance_id is not None or exchange.member_id in known.answered
        if known.synced > NEVER and (is_listed or not exchange.reply["members"]):
            return None
        return self._begun(exchange) if exchange.sent > known.last else None

    def _begun(self, exchange: Exchange) -> Generation:
        reply = exchange.reply
        begun = Generation(
            number=reply["generationId"],
            first=exchange.replied,
            last=exchange.replied,
            protocol=(reply.get("protocolType"), reply["protocolName"]),
        )
        self.generations.put(begun.number, begun)
        return begun
