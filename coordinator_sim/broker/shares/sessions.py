"""Share sessions: which partitions a member fetches from a broker, told once and then changed.

A session is that of one member of one group, and ends with the connection that began it.

Source: kafka 4.3.1, server/.../share/session/ShareSession and ShareSessionCache,
CachedSharePartition; SharePartitionManager.newContext and acknowledgeSessionUpdate.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from coordinator_sim.broker.records.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchPlace,
    next_epoch,
)
from coordinator_sim.kafka.errors import ErrorCode

FIRST_EPOCH: Final = next_epoch(INITIAL_EPOCH)


class SessionKey(NamedTuple):
    """A member of a group."""

    group_id: str
    member_id: str


PartitionOf = tuple[bytes, int]
"""A partition as sessions tell them apart: its topic's id and its number."""


@dataclass(slots=True)
class CachedPartition:
    """A partition of a session.

    Args:
        place: With the topic's name when it was added.
        is_due: Whether the next answer names it even if there is nothing to tell.
    """

    place: FetchPlace
    is_due: bool

    def has_news(self, error: ErrorCode, records: bytes | None) -> bool:
        """Whether an answer names it. Source: CachedSharePartition.maybeUpdateResponseData."""
        return bool(records) or self.is_due or error is not ErrorCode.NONE


@dataclass(slots=True)
class ShareSession:
    """The session of a member.

    Args:
        key: Whose it is.
        connection: Number of the connection that began it.
        partitions: What is fetched, in the order of fetching.
        epoch: Of the next request.
    """

    key: SessionKey
    connection: int
    partitions: dict[PartitionOf, CachedPartition]
    epoch: int = FIRST_EPOCH

    def update(self, wanted: Iterable[FetchPlace], forgotten: Iterable[FetchPlace]) -> None:
        """Fetch some partitions too, and others no longer."""
        for place in wanted:
            self.partitions.setdefault(partition_of(place), CachedPartition(place, is_due=True))
        for place in forgotten:
            self.partitions.pop(partition_of(place), None)

    def answered(self, place: PartitionOf, error: ErrorCode, records: bytes | None) -> None:
        """An answer names a partition; if it has records, others are first the next time."""
        self.partitions[place].is_due = error is not ErrorCode.NONE
        if records:
            self.partitions[place] = self.partitions.pop(place)


def partition_of(place: FetchPlace) -> PartitionOf:
    """The key of a partition in a share session: topic id and partition number."""
    return place.topic_id, place.partition


@dataclass(slots=True)
class _Begun:
    """The last session that a connection began.

    Attributes:
        is_stale: Whether some session of the connection has ended. QUIRK: of a connection with
            several sessions any of them makes the last one stale, as in Kafka.
    """

    key: SessionKey
    is_stale: bool = False


@dataclass(slots=True)
class ShareSessionCache:
    """The sessions of one broker.

    Args:
        limit: How many there may be, `group.share.max.share.sessions`.
        member_left: Called for the session of a connection that is gone.
        group_emptied: Called when a connection is gone and no session of its group is left.
    """

    limit: int
    member_left: Callable[[SessionKey], None]
    group_emptied: Callable[[str], None]
    _sessions: dict[SessionKey, ShareSession] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _begun: dict[int, _Begun] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        """The session of a member."""
        return self._sessions.get(key)

    def remove(self, key: SessionKey) -> bool:
        """End a session; False when there is none."""
        session = self._sessions.pop(key, None)
        if session is None:
            return False
        self._counts[key.group_id] = self._counts.get(key.group_id, 1) - 1
        begun = self._begun.get(session.connection)
        if begun is not None:
            begun.is_stale = True
        return True

    def clear(self) -> None:
        """End all sessions. Source: removeAllSessions."""
        self._sessions.clear()
        self._counts.clear()

    def begin(
        self, key: SessionKey, wanted: Iterable[FetchPlace], connection: int
    ) -> ShareSession | None:
        """Begin a session; None when there are too many. Source: maybeCreateSession."""
        if len(self._sessions) >= self.limit:
            return None
        cached = {partition_of(each): CachedPartition(each, is_due=False) for each in wanted}
        session = self._sessions[key] = ShareSession(key, connection, cached)
        self._counts[key.group_id] = self._counts.get(key.group_id, 0) + 1
        self._begun[connection] = _Begun(key)
        return session

    def disconnected(self, connection: int) -> None:
        """A client is gone: so is its session, and what it had acquired is free again.

        Source: ShareSessionCache.ClientConnectionDisconnectListener.
        """
        begun = self._begun.pop(connection, None)
        if begun is None:
            return
        if not begun.is_stale and begun.key in self._sessions:
            self.member_left(begun.key)
            self.remove(begun.key)
        group_id = begun.key.group_id
        if self._counts.get(group_id, 0) == 0:
            self._counts.pop(group_id, None)
            self.group_emptied(group_id)

    # -- requests --------------------------------------------------------------------------

    def acknowledged(self, key: SessionKey, epoch: int) -> ErrorCode:
        """Take note of a ShareAcknowledge. Source: acknowledgeSessionUpdate."""
        if epoch == INITIAL_EPOCH:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == FINAL_EPOCH:
            return ErrorCode.NONE
        if session.epoch != epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.epoch = next_epoch(session.epoch)
        return ErrorCode.NONE


class ShareFetchContext(NamedTuple):
    """What a ShareFetch fetches by its session.

    Args:
        epoch: Of the request.
        places: The partitions, in the order of fetching.
        session: The session that goes on; None for one that begins or ends.
    """

    epoch: int
    places: tuple[FetchPlace, ...]
    session: ShareSession | None

    @property
    def is_overtaken(self) -> bool:
        """Whether the session has seen another request since."""
        return self.session is not None and self.session.epoch != next_epoch(self.epoch)


class SessionTerms(NamedTuple):
    """Session fields of a ShareFetch.

    Args:
        key: Whose session.
        epoch: Of the request.
        wanted: Partitions that it names.
        forgotten: Partitions that are fetched no longer.
        acknowledges: Whether it acknowledges records.
        connection: By which it came.
    """

    key: SessionKey
    epoch: int
    wanted: tuple[FetchPlace, ...]
    forgotten: tuple[FetchPlace, ...]
    acknowledges: bool
    connection: int


def new_context(sessions: ShareSessionCache, terms: SessionTerms) -> ShareFetchContext | ErrorCode:
    """Begin a session, go on with it, or look at it for the last time.

    Source: SharePartitionManager.newContext.
    """
    if terms.epoch == FINAL_EPOCH:
        if sessions.get(terms.key) is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        return ShareFetchContext(terms.epoch, (), None)
    if terms.epoch == INITIAL_EPOCH:
        if terms.acknowledges:
            return ErrorCode.INVALID_REQUEST
        sessions.remove(terms.key)
        if sessions.begin(terms.key, terms.wanted, terms.connection) is None:
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        return ShareFetchContext(terms.epoch, terms.wanted, None)
    session = sessions.get(terms.key)
    if session is None:
        return ErrorCode.SHARE_SESSION_NOT_FOUND
    if session.epoch != terms.epoch:
        return ErrorCode.INVALID_SHARE_SESSION_EPOCH
    session.update(terms.wanted, terms.forgotten)
    session.epoch = next_epoch(session.epoch)
    places = tuple(each.place for each in session.partitions.values())
    return ShareFetchContext(terms.epoch, places, session)
