"""A consumer group as its trace shows it: who its members are, and when each was restarted.

A process that is restarted comes back under another member id. Whoever joins takes the place of the
member that has been away the longest: of those with its client id, or else of all.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median_low
from typing import Final

from msgspec import Struct

from coordinator_sim.trace.events import Event, TraceEvent

_UUID_LENGTH: Final = 36
_DEFAULT_SESSION_MS: Final = 45_000
_US_PER_MS: Final = 1_000
DEPLOY_GAP_MS: Final = 600_000
"""Longest time between two restarts of one deploy."""
_COMES: Final = frozenset({Event.MEMBER_ID_ASSIGNED, Event.MEMBER_ADDED})
"""A broker's log often tells the first of the two alone."""
_TELLS_TIMEOUTS: Final = frozenset({Event.JOIN_REQ, Event.MEMBER_ADDED})
_GONE: Final = frozenset({Event.MEMBER_LEFT, Event.MEMBER_FAILED, Event.MEMBER_KICKED})


class SeenRestart(Struct, frozen=True, kw_only=True):
    """A member that was away for a while.

    Args:
        at_us: When its process ended: its leave, or a session before it was removed.
        down_us: Until the group knew its next process; None where the trace does not tell.
        graceful: Whether it left by itself.
    """

    member: str
    at_us: int
    down_us: int | None
    graceful: bool


class SeenGroup(Struct, frozen=True, kw_only=True):
    """A consumer group as one source describes it.

    Args:
        members: `group.instance.id` by the member's name; None is a dynamic member.
        topics: Number of partitions by topic; empty where the source lacks it.
        assignor: Protocol name of the last generation; None is unknown.
        restarts: Restarts in the order of their instants.
        first_us: Time of its first event, microseconds.
        last_us: Time of its last event, microseconds.
        protocol_type: `consumer`, `connect`; None where the source lacks it.
        session_timeout_ms: The members' most common one; None where the source lacks it.
        rebalance_timeout_ms: As above; a consumer's `max.poll.interval.ms`.
        software: Names and versions of its clients, where the source has them.
    """

    group_id: str
    members: dict[str, str | None]
    topics: dict[str, int]
    assignor: str | None
    restarts: tuple[SeenRestart, ...] = ()
    first_us: int = 0
    last_us: int = 0
    protocol_type: str | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    software: tuple[str, ...] = ()


class SeenDeploys(Struct, frozen=True, kw_only=True):
    """The rolling restarts of a group: at least half of its members, one soon after the other.

    Args:
        count: How many there were.
        pace_us: Usual time from one stop to the next; None where there was no second one.
        down_us: Usual time without a process; None where the source does not tell.
    """

    count: int
    pace_us: int | None
    down_us: int | None


class _Place(Struct):
    """A member's place in the group, kept over its processes."""

    name: str
    client_id: str
    instance_id: str | None
    since_us: int


class _Seats:
    """The places of a group while its events pass; every step takes the same time."""

    def __init__(self) -> None:
        self.places: dict[str, _Place] = {}
        self.restarts: list[SeenRestart] = []
        self._here: dict[str, _Place] = {}
        self._static: dict[str, _Place] = {}
        self._away: dict[str, tuple[_Place, int, bool]] = {}
        """By place, the longest away first: when it went, and whether by itself."""
        self._away_by_client: dict[str, dict[str, None]] = {}
        self._newcomers: dict[str, _Place] = {}
        """By member id, the newest last: who took nobody's place."""
        self._numbers: dict[str, int] = {}
        self._unseen: int | None = None

    def join(self, event: TraceEvent) -> None:
        member_id = event.member_id or ""
        if member_id in self._here:
            return
        client_id = _client_id(event)
        wanted = next(iter(self._away_by_client.get(client_id) or self._away), None)
        if wanted is None:
            place = self._new_place(event, client_id)
            self._here[member_id] = self._newcomers[member_id] = place
            return
        place, at_us, graceful = self._away.pop(wanted)
        del self._away_by_client[place.client_id][wanted]
        self._restarted(place, at_us, event.ts_us, graceful=graceful)
        self._here[member_id] = place

    def leave(self, event: TraceEvent) -> None:
        member_id = event.member_id or ""
        self._newcomers.pop(member_id, None)
        place = self._here.pop(member_id, None) or self._met(event, _client_id(event))
        at_us, graceful = event.ts_us, event.event is Event.MEMBER_LEFT
        if not graceful:
            session_ms = event.session_timeout_ms or _DEFAULT_SESSION_MS
            at_us = max(place.since_us, at_us - session_ms * _US_PER_MS)
            newest = next(reversed(self._newcomers), None)
            if newest is not None and self._newcomers[newest].since_us > at_us:
                # The next process was there before its predecessor was missed.
                successor = self._newcomers.pop(newest)
                del self.places[successor.name]
                self._restarted(place, at_us, successor.since_us, graceful=False)
                self._here[newest] = place
                return
        self._away[place.name] = (place, at_us, graceful)
        self._away_by_client.setdefault(place.client_id, {})[place.name] = None

    def replace(self, event: TraceEvent) -> None:
        instance_id = event.group_instance_id or ""
        place = self._static.get(instance_id) or self._met(event, instance_id)
        self.restarts.append(
            SeenRestart(member=place.name, at_us=event.ts_us, down_us=None, graceful=True)
        )

    def count(self, members: int) -> None:
        """Hear for the first time how many members there are: some came before the trace."""
        if self._unseen is None:
            self._unseen = max(0, members - len(self._here))

    def fill_up(self, *, is_static: bool) -> None:
        """Add places for members that no event has named; in a static group all are static."""
        for _ in range(self._unseen or 0):
            name = self._free_name("member")
            self.places[name] = _Place(name, "", None, 0)
        for name, place in self.places.items():
            if is_static and place.instance_id is None:
                place.instance_id = name

    def _restarted(self, place: _Place, at_us: int, back_us: int, *, graceful: bool) -> None:
        place.since_us = back_us
        self.restarts.append(
            SeenRestart(
                member=place.name, at_us=at_us, down_us=max(0, back_us - at_us), graceful=graceful
            )
        )

    def _met(self, event: TraceEvent, client_id: str) -> _Place:
        """Return a place for a member that was there before the trace."""
        self._unseen = max(0, (self._unseen or 0) - 1)
        return self._new_place(event, client_id)

    def _new_place(self, event: TraceEvent, client_id: str) -> _Place:
        instance_id = event.group_instance_id
        name = self._free_name(instance_id or client_id or "member")
        place = self.places[name] = _Place(name, client_id, instance_id, event.ts_us)
        if instance_id is not None:
            self._static[instance_id] = place
        return place

    def _free_name(self, wanted: str) -> str:
        if wanted not in self.places:
            return wanted
        number = self._numbers.get(wanted, 1) + 1
        while f"{wanted}-{number}" in self.places:
            number += 1
        self._numbers[wanted] = number
        return f"{wanted}-{number}"


class _Traits:
    """What all members of a group have in common, while its events pass."""

    def __init__(self) -> None:
        self.times: list[int] = []
        """The first and the last."""
        self.assignor: str | None = None
        self.protocol_type: str | None = None
        self.is_static = False
        self._sessions: list[int] = []
        self._rebalances: list[int] = []
        self._software: dict[str, None] = {}

    def hear(self, event: TraceEvent) -> None:
        times = self.times
        self.times = [min((*times[:1], event.ts_us)), max((*times[1:], event.ts_us))]
        self.assignor = event.protocol_name or self.assignor
        self.protocol_type = event.protocol_type or self.protocol_type
        if event.members and event.static_members is not None:
            self.is_static = event.members == event.static_members
        if event.event in _TELLS_TIMEOUTS:
            session_ms, rebalance_ms = event.session_timeout_ms, event.rebalance_timeout_ms
            self._sessions += [] if session_ms is None else [session_ms]
            self._rebalances += [] if rebalance_ms is None else [rebalance_ms]
        if "client_sw" in event.attrs:
            self._software[event.attrs["client_sw"]] = None

    def of(self, group_id: str, seats: _Seats) -> SeenGroup:
        return SeenGroup(
            group_id=group_id,
            members={name: place.instance_id for name, place in seats.places.items()},
            topics={},
            assignor=self.assignor,
            restarts=tuple(sorted(seats.restarts, key=lambda each: each.at_us)),
            first_us=self.times[0],
            last_us=self.times[1],
            protocol_type=self.protocol_type,
            session_timeout_ms=median_low(self._sessions) if self._sessions else None,
            rebalance_timeout_ms=median_low(self._rebalances) if self._rebalances else None,
            software=tuple(self._software),
        )


def seen_group(events: Iterable[TraceEvent], group_id: str) -> SeenGroup | None:
    """Return a consumer group's members and restarts; None where no event tells of members.

    Args:
        events: Events of one trace in emission order, of any groups.
        group_id: The group.
    """
    seats, traits = _Seats(), _Traits()
    for event in events:
        if event.group_id != group_id:
            continue
        traits.hear(event)
        if event.members is not None:
            seats.count(event.members)
        if event.event in _COMES:
            seats.join(event)
        elif event.event in _GONE:
            seats.leave(event)
        elif event.event is Event.STATIC_REPLACED:
            seats.replace(event)
    seats.fill_up(is_static=traits.is_static)
    return traits.of(group_id, seats) if seats.places else None


def deploys_of(seen: SeenGroup) -> SeenDeploys:
    """Return the rolling restarts of a group, crashes left out."""
    graceful = [each for each in seen.restarts if each.graceful]
    runs: list[list[SeenRestart]] = []
    for restart in graceful:
        if not runs or restart.at_us - runs[-1][-1].at_us > DEPLOY_GAP_MS * _US_PER_MS:
            runs.append([])
        runs[-1].append(restart)
    whole = (len(seen.members) + 1) // 2
    deploys = [run for run in runs if len(run) >= max(min(2, len(seen.members)), whole)]
    paces = [after.at_us - before.at_us for run in deploys for before, after in pairwise(run)]
    return SeenDeploys(
        count=sum(_rounds(run) for run in deploys),
        pace_us=median_low(paces) if paces else None,
        down_us=_usual_down_us([each for run in deploys for each in run] or graceful),
    )


def _rounds(run: Sequence[SeenRestart]) -> int:
    """How often a run of restarts goes round: deploys may follow each other soon."""
    names = [each.member for each in run]
    return max(1, min(names.count(name) for name in dict.fromkeys(names)))


def _usual_down_us(restarts: Sequence[SeenRestart]) -> int | None:
    known = [each.down_us for each in restarts if each.down_us is not None]
    return median_low(known) if known else None


def _client_id(event: TraceEvent) -> str:
    member_id = event.member_id or ""
    return event.client_id or member_id[: -_UUID_LENGTH - 1] or member_id


def topics_of(resources: Iterable[str]) -> dict[str, int]:
    """Return the partitions of each topic, as far as resources such as `p:orders-3` show them."""
    topics: dict[str, int] = {}
    for resource in resources:
        topic, _, partition = resource.removeprefix("p:").rpartition("-")
        topics[topic] = max(topics.get(topic, 0), int(partition) + 1)
    return dict(sorted(topics.items()))
