"""Incremental fetch sessions (KIP-227): a broker's memory of the partitions that a client fetches.

A full request may create a session; later requests and answers then carry only what changed.
This module holds the sessions and picks what is answered; it does not read logs.

Source: kafka trunk, core/.../server/FetchSession.scala; clients/.../requests/FetchMetadata.java.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from coordinator_sim.messages.schema import ZERO_UUID

INVALID_SESSION_ID: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MIN_EVICTION_MS: Final = 120_000
"""How long no other evicts a session. Source: MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""
SHARD_COUNT: Final = 8
"""Shards of a broker's cache. Source: BrokerServer, NumFetchSessionCacheShards."""
DEFAULT_SLOTS: Final = 1_000
"""Default of `max.incremental.fetch.session.cache.slots`."""
NOT_DIVERGING: Final = EpochEndOffset()
"""Answer to a follower whose log does not diverge from the leader's."""

_MAX_ID: Final = 2**31 - 1
_TOPIC_IDS_SINCE: Final = 13
"""Fetch names topics by id from this version on."""


class FetchPlace(NamedTuple):
    """A partition as a fetch names it; the name is None for an unknown topic id."""

    topic_id: bytes
    topic: str | None
    partition: int


class FetchTerms(NamedTuple):
    """What a fetch asks of one partition; an unknown epoch is -1."""

    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1


Wanted = dict[FetchPlace, FetchTerms]
"""Partitions to fetch, in the order of the request."""
Found = dict[FetchPlace, PartitionData]
"""Answers of partitions, in the order of the answer."""
DrawId = Callable[[int, int], int]
"""Draws a number from the first (included) to the second (excluded)."""


class FetchMetadata(Struct, frozen=True, gc=False):
    """The session id and epoch of a request; the defaults mean none (before version 7)."""

    session_id: int = INVALID_SESSION_ID
    epoch: int = FINAL_EPOCH

    @property
    def is_full(self) -> bool:
        """Whether the request names all its partitions."""
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)


def next_epoch(epoch: int) -> int:
    """The epoch after a given one; the final epoch stays. Source: FetchMetadata.nextEpoch."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _MAX_ID else epoch + 1


@dataclass(slots=True)
class CachedPartition:
    """A partition of a session: the terms it is fetched on, and what was last answered."""

    topic_id: bytes
    topic: str | None
    partition: int
    terms: FetchTerms
    high_watermark: int = -1
    log_start_offset: int = -1

    def has_news(self, answer: PartitionData) -> bool:
        """Whether the client must hear an answer: it differs from the one before.

        Source: CachedPartition.maybeUpdateResponseData.
        """
        return (
            bool(answer.records)
            or self.high_watermark != answer.high_watermark
            or self.log_start_offset != answer.log_start_offset
            or answer.preferred_read_replica != -1
            or answer.diverging_epoch != NOT_DIVERGING
            or answer.error_code is not ErrorCode.NONE
        )

    def take(self, answer: PartitionData) -> None:
        """Count the values of an answer as answered."""
        self.high_watermark = answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        if answer.error_code is not ErrorCode.NONE:
            # Answer the partition again once the error is over.
            self.high_watermark = -1


_Key = tuple[bytes | str | None, int]


def _key(place: FetchPlace) -> _Key:
    """Key of a partition: by topic id, else by name. Source: CachedPartition.equals."""
    identity = place.topic if place.topic_id == ZERO_UUID else place.topic_id
    return identity, place.partition


@dataclass(slots=True)
class FetchSession:
    """One session.

    Attributes:
        is_privileged: Whether a follower owns the session, so that consumers cannot evict it.
        partitions: The partitions, in the order in which they are read next.
        cached_size: Number of partitions when the session was last used.
    """

    session_id: int
    is_privileged: bool
    uses_topic_ids: bool
    created_ms: int
    last_used_ms: int
    epoch: int
    partitions: dict[_Key, CachedPartition]
    cached_size: int

    def update(self, wanted: Wanted, forgotten: Sequence[FetchPlace]) -> None:
        """Apply the changes of a request. Source: FetchSession.update."""
        for place, terms in wanted.items():
            cached = self.partitions.get(_key(place))
            if cached is None:
                self.partitions[_key(place)] = CachedPartition(*place, terms)
            else:
                cached.terms = terms
        for place in forgotten:
            self.partitions.pop(_key(place), None)


class FetchContext(Protocol):
    """All partitions of a request, and how its answer is built."""

    def partitions(self) -> Iterator[tuple[FetchPlace, FetchTerms]]:
        """The partitions in the order in which they are to be read."""
        ...

    def answer(self, found: Found, now_ms: int) -> FetchResponse:
        """Build the response: error, session and the partitions it names.

        Args:
            found: Answers of all partitions.
            now_ms: Present on the wall clock.
        """
        ...

    def included(self, found: Found) -> Found:
        """The answers that `answer` would send. Source: FetchContext.getResponseSize."""
        ...

    def throttled(self) -> FetchResponse:
        """Build a response without partitions. Source: FetchContext.getThrottledResponse."""
        ...


class Sessionless(Struct, frozen=True):
    """A request without a session."""

    wanted: Wanted

    def partitions(self) -> Iterator[tuple[FetchPlace, FetchTerms]]:
        """The partitions, in the order of the request."""
        return iter(self.wanted.items())

    def answer(self, found: Found, _now_ms: int) -> FetchResponse:
        """Build a response with all partitions."""
        return response_of(ErrorCode.NONE, INVALID_SESSION_ID, found)

    def included(self, found: Found) -> Found:
        """All answers."""
        return found

    def throttled(self) -> FetchResponse:
        """Build a response without session, and without error."""
        return response_of(ErrorCode.NONE, INVALID_SESSION_ID, {})


class SessionError(Sessionless, frozen=True):
    """A request with an unknown session, so without partitions, or with a wrong session epoch."""

    error: ErrorCode

    def answer(self, _found: Found, _now_ms: int) -> FetchResponse:
        """Build a response with the error alone."""
        return response_of(self.error, INVALID_SESSION_ID, {})


class FullFetch(Sessionless, frozen=True):
    """A full request, which creates a session if there is room for it."""

    cache: "FetchSessionCache"
    uses_topic_ids: bool
    is_privileged: bool

    def answer(self, found: Found, now_ms: int) -> FetchResponse:
        """Build a response with all partitions and the id of the new session."""
        partitions = {
            _key(place): CachedPartition(
                *place,
                self.wanted[place],
                high_watermark=answer.high_watermark,
                log_start_offset=answer.log_start_offset,
            )
            for place, answer in found.items()
        }
        session_id = self.cache.next_shard().maybe_create(
            partitions,
            now_ms,
            is_privileged=self.is_privileged,
            uses_topic_ids=self.uses_topic_ids,
        )
        return response_of(ErrorCode.NONE, session_id, found)


class IncrementalFetch(Struct, frozen=True):
    """A request that says what changed since the last one of its session.

    Args:
        session: The session.
        epoch: Session epoch of the request.
        topic_names: Topic names by id; a topic that was unknown before may be known now.
    """

    session: FetchSession
    epoch: int
    topic_names: Mapping[bytes, str]

    def partitions(self) -> Iterator[tuple[FetchPlace, FetchTerms]]:
        """All partitions of the session."""
        for cached in self.session.partitions.values():
            if self.session.uses_topic_ids and cached.topic is None:
                cached.topic = self.topic_names.get(cached.topic_id)
            yield FetchPlace(cached.topic_id, cached.topic, cached.partition), cached.terms

    def answer(self, found: Found, _now_ms: int) -> FetchResponse:
        """Build a response with the changed partitions; those with records are read last next time.

        Source: IncrementalFetchContext.updateAndGenerateResponseData, PartitionIterator.
        """
        session = self.session
        if self._is_overtaken():
            return self.throttled()
        news = self.included(found)
        for place, answer in news.items():
            key = _key(place)
            cached = session.partitions[key]
            cached.take(answer)
            if answer.records:
                session.partitions[key] = session.partitions.pop(key)
        return response_of(ErrorCode.NONE, session.session_id, news)

    def included(self, found: Found) -> Found:
        """The answers that the client has not had before.

        A partition may be gone: forgotten by a request that emptied, and so ended, the session.
        """
        partitions = {} if self._is_overtaken() else self.session.partitions
        return {
            place: answer
            for place, answer in found.items()
            if (cached := partitions.get(_key(place))) is not None and cached.has_news(answer)
        }

    def throttled(self) -> FetchResponse:
        """Build a response without partitions, or with the error of an overtaken request."""
        error = ErrorCode.INVALID_FETCH_SESSION_EPOCH if self._is_overtaken() else ErrorCode.NONE
        return response_of(error, self.session.session_id, {})

    def _is_overtaken(self) -> bool:
        """Whether the session has gone on since the request came."""
        return self.session.epoch != next_epoch(self.epoch)


class SessionShard:
    """One shard of the cache.

    Args:
        slots: How many sessions fit.
        ids: Range of session ids: first (included) and second (excluded).
        draw: Draws ids.
        eviction_ms: How long a session is safe from eviction.
    """

    __slots__ = ("_draw", "_eviction_ms", "_ids", "_slots", "sessions")

    def __init__(
        self, slots: int, ids: tuple[int, int], draw: DrawId, eviction_ms: int = MIN_EVICTION_MS
    ) -> None:
        self._slots = slots
        self._ids = ids
        self._draw = draw
        self._eviction_ms = eviction_ms
        self.sessions: dict[int, FetchSession] = {}

    def maybe_create(
        self,
        partitions: dict[_Key, CachedPartition],
        now_ms: int,
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
    ) -> int:
        """The id of a new session, or INVALID_SESSION_ID when there is no room for it."""
        size = len(partitions)
        if len(self.sessions) >= self._slots and not self._try_evict(
            size, now_ms, is_privileged=is_privileged
        ):
            return INVALID_SESSION_ID
        session = FetchSession(
            session_id=self._new_id(),
            is_privileged=is_privileged,
            uses_topic_ids=uses_topic_ids,
            created_ms=now_ms,
            last_used_ms=now_ms,
            epoch=next_epoch(INITIAL_EPOCH),
            partitions=partitions,
            cached_size=size,
        )
        self.sessions[session.session_id] = session
        return session.session_id

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """Note that a session was used."""
        session.last_used_ms = now_ms
        session.cached_size = len(session.partitions)

    def _new_id(self) -> int:
        # Terminates: there are far more ids than slots.
        while True:
            session_id = self._draw(*self._ids)
            if session_id != INVALID_SESSION_ID and session_id not in self.sessions:
                return session_id

    def _try_evict(self, size: int, now_ms: int, *, is_privileged: bool) -> bool:
        """Try to make room; return whether there is. Source: FetchSessionCacheShard.tryEvict.

        A session unused for `eviction_ms` is evicted first. Otherwise the lowest ranked one that
        may go, if the new one ranks no lower: consumers below followers, small below large, low
        ids below high.
        """
        if not self.sessions:
            return False
        oldest = min(self.sessions.values(), key=lambda s: (s.last_used_ms, s.session_id))
        if now_ms - oldest.last_used_ms > self._eviction_ms:
            del self.sessions[oldest.session_id]
            return True
        evictable = [
            session
            for session in self.sessions.values()
            if self._may_go(session, is_privileged=is_privileged)
        ]
        if not evictable:
            return False
        least = min(evictable, key=_worth)
        if (is_privileged, size, 0) < _worth(least):
            return False
        del self.sessions[least.session_id]
        return True

    def _may_go(self, session: FetchSession, *, is_privileged: bool) -> bool:
        """Whether a session could be evicted when it was last used. Source: touch."""
        if session.last_used_ms - session.created_ms > self._eviction_ms:
            return True
        return is_privileged and not session.is_privileged


def _worth(session: FetchSession) -> tuple[bool, int, int]:
    return session.is_privileged, session.cached_size, session.session_id


class FetchSessionCache:
    """The sessions of one broker.

    Args:
        slots: `max.incremental.fetch.session.cache.slots`; 0 for none.
        draw: Draws session ids.
        shard_count: Shards that share the slots; new sessions go to each in turn.
    """

    __slots__ = ("_created", "_id_range", "_shards")

    def __init__(self, slots: int, draw: DrawId, shard_count: int = SHARD_COUNT) -> None:
        self._id_range = _MAX_ID // shard_count
        self._shards = [
            SessionShard(
                slots // shard_count,
                (max(1, shard * self._id_range), (shard + 1) * self._id_range),
                draw,
            )
            for shard in range(shard_count)
        ]
        self._created = 0

    def __len__(self) -> int:
        """Number of sessions."""
        return sum(len(shard.sessions) for shard in self._shards)

    def next_shard(self) -> SessionShard:
        """The shard of the next new session."""
        shard = self._shards[self._created % len(self._shards)]
        self._created += 1
        return shard

    def shard_of(self, session_id: int) -> SessionShard:
        """The shard that a session id belongs to."""
        index = session_id // self._id_range
        # An id out of range is in no shard; any shard answers that it is unknown.
        return self._shards[index if 0 <= index < len(self._shards) else 0]

    def new_context(
        self,
        version: int,
        metadata: FetchMetadata,
        wanted: Wanted,
        forgotten: Sequence[FetchPlace],
        topic_names: Mapping[bytes, str],
        scope: "FetchScope",
    ) -> FetchContext:
        """The context of a request. Source: FetchManager.newContext."""
        shard = self.shard_of(metadata.session_id)
        if metadata.is_full:
            shard.sessions.pop(metadata.session_id, None)
            if metadata.epoch == FINAL_EPOCH:
                return Sessionless(wanted)
            by_id = version >= _TOPIC_IDS_SINCE
            return FullFetch(wanted, self, by_id, scope.is_follower)
        session = shard.sessions.get(metadata.session_id)
        if session is None:
            return SessionError({}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != metadata.epoch:
            return SessionError({}, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != (version >= _TOPIC_IDS_SINCE):
            return SessionError({}, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(wanted, forgotten)
        if not session.partitions:
            del shard.sessions[session.session_id]
            return Sessionless(wanted)
        shard.touch(session, scope.now_ms)
        session.epoch = next_epoch(session.epoch)
        return IncrementalFetch(session, metadata.epoch, topic_names)


class FetchScope(Struct, frozen=True, gc=False):
    """Kind of the fetcher, and the present on the wall clock."""

    now_ms: int
    is_follower: bool = False


def response_of(error: ErrorCode, session_id: int, found: Found) -> FetchResponse:
    """Build a Fetch response; adjacent partitions of a topic share one entry.

    Source: FetchResponse.toMessage.
    """
    topics: list[tuple[FetchPlace, list[PartitionData]]] = []
    last: tuple[bytes, str | None] | None = None
    for place, answer in found.items():
        identity = (place.topic_id, place.topic if place.topic_id == ZERO_UUID else None)
        if identity != last:
            last = identity
            topics.append((place, []))
        topics[-1][1].append(answer)
    return FetchResponse(
        error_code=error,
        session_id=session_id,
        responses=tuple(
            FetchableTopicResponse(first.topic or "", first.topic_id, tuple(told))
            for first, told in topics
        ),
    )
