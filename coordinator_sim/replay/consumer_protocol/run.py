"""One episode of a recorded group under the consumer protocol: its events and its figures.

Plays the members of a recorded group as members of the consumer protocol, on the core.

Members send heartbeats as Java's consumer does: one in every interval of the broker, one at once to
join, to leave and to acknowledge. While the group is settled a heartbeat changes nothing but the
deadline of its session. So one heartbeat gives a session that outlasts the run, and the further
ones are left out until the group has work, or the member is about to go; all keep their place in
time. A run costs as much as its rebalances, not as its length.

What a run of a group costs: moves, interruptions, standstill, work without an owner.

The definitions are those of `replay/sharing`, so that both protocols have one set of figures.

Members of the consumer protocol in action, and the heartbeats that they send.

What a member does with an assignment follows Java's consumer, which `clients/async_consumer` is.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.clients.settings_advice import SERVER_ASSIGNORS
from coordinator_sim.coordinator.contract import CoordinatorConfig, CoordinatorResult, Reply
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.coordinator.topics import KnownTopic
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment
from coordinator_sim.replay.compare import figures
from coordinator_sim.replay.consumer_protocol.lives import Departure, Life, lives_of
from coordinator_sim.replay.course import Absence, Course
from coordinator_sim.replay.pace import Pace
from coordinator_sim.replay.plan import NEVER_MS, GroupPlan
from coordinator_sim.replay.players import NamedIds
from coordinator_sim.replay.report import RunFigures
from coordinator_sim.replay.settings import (
    CONSUMER_HEARTBEAT_INTERVAL_MS,
    CONSUMER_SESSION_TIMEOUT_MS,
    Settings,
)
from coordinator_sim.replay.sharing import SharingCosts
from coordinator_sim.replay.strategies import Owners, fewest_moves, moves_between
from coordinator_sim.replay.work import GroupWork
from coordinator_sim.trace.epoch_groups import TEMPORARY
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.window import ALWAYS
from coordinator_sim.trace.window import Window as Shown

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STEP_ASIDE_EPOCH: Final = -2
HEARTBEAT_VERSION: Final = 1
_ID_BYTES: Final = 16


class Topics:
    """The topics of a group's work, as its coordinator knows them.

    Args:
        counts: Topic -> number of partitions.
    """

    def __init__(self, counts: dict[str, int]) -> None:
        self.known = tuple(
            KnownTopic(name=name, topic_id=_id_of(name), partition_count=count)
            for name, count in sorted(counts.items())
        )
        self._names = {topic.topic_id: topic.name for topic in self.known}
        self._ids = {topic.name: topic.topic_id for topic in self.known}

    def partitions_of(self, assignment: Assignment) -> frozenset[TopicPartition]:
        """Return the partitions of an answer."""
        return frozenset(
            TopicPartition(self._names[each.topic_id], number)
            for each in assignment.topic_partitions
            for number in each.partitions
        )

    def told(self, partitions: frozenset[TopicPartition]) -> tuple[TopicPartitions, ...]:
        """Return partitions as a heartbeat names them."""
        by_topic: dict[str, list[int]] = {}
        for topic, number in sorted(partitions):
            by_topic.setdefault(topic, []).append(number)
        return tuple(
            TopicPartitions(self._ids[topic], tuple(numbers)) for topic, numbers in by_topic.items()
        )


def _id_of(name: str) -> bytes:
    """Return a topic id derived from the name, because a trace has none; equal in every run."""
    return sha256(name.encode()).digest()[:_ID_BYTES]


@dataclass(slots=True, eq=False)
class Member:
    """A member in action.

    Attributes:
        epoch: Epoch that its next heartbeat tells.
        has: Partitions that it works on.
        target: Partitions that it was last told to have.
        sent_ms: When it sent its last heartbeat, or would have sent one that changes nothing.
        turn: Number of its heartbeats; a heartbeat that is due for an earlier turn is stale.
        is_live: Whether its process runs and is a member, or on the way to be one.
        is_reconciling: Whether it is on the way from what it has to its target.
    """

    life: Life
    topics: tuple[str, ...]
    epoch: int = JOIN_EPOCH
    has: frozenset[TopicPartition] = field(default_factory=frozenset)
    target: frozenset[TopicPartition] = field(default_factory=frozenset)
    sent_ms: int = 0
    turn: int = 0
    is_live: bool = False
    is_reconciling: bool = False

    @property
    def key(self) -> str:
        """Its instance id, or its member id: who works on a partition."""
        return self.life.instance_id or self.life.member_id


def joining(
    member: Member, group_id: str, rebalance_timeout_ms: int, assignor: str | None
) -> ConsumerGroupHeartbeatRequest:
    """Return its first heartbeat, which tells everything."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member.life.member_id,
        member_epoch=JOIN_EPOCH,
        instance_id=member.life.instance_id,
        rebalance_timeout_ms=rebalance_timeout_ms,
        subscribed_topic_names=member.topics,
        server_assignor=assignor,
        topic_partitions=(),
    )


def beating(
    member: Member, group_id: str, told: tuple[TopicPartitions, ...] | None = None
) -> ConsumerGroupHeartbeatRequest:
    """Return a heartbeat; `told` are its partitions, after they have changed."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member.life.member_id,
        member_epoch=member.epoch,
        instance_id=member.life.instance_id,
        topic_partitions=told,
    )


class Window(Struct, frozen=True):
    """The time that counts, milliseconds of the trace."""

    from_ms: int
    until_ms: int


class Ledger:
    """Adds up who works on what, and what each target moves.

    Args:
        size: Number of partitions.
        window: What is outside costs nothing.
        dropped: Gets the partitions that lose a working owner within the window.
    """

    def __init__(self, size: int, window: Window, dropped: set[object]) -> None:
        self._size = size
        self._window = window
        self._dropped = dropped
        self._now_ms = window.from_ms
        self._counts = False
        self._workers: Owners = {}
        self._worked: set[object] = set()
        self._since: dict[object, int] = {}
        self._targets: Owners = {}
        self._settled: Owners = {}
        self._keys: tuple[str, ...] = ()
        self._counts_target = False
        self.targets = 0
        self._moved = self._needless = self._interrupted = 0
        self._stopped_ms = self._unowned_ms = self._longest_ms = 0

    # -- who works ---------------------------------------------------------------------------

    def opens(self, now_ms: int) -> None:
        """Note that the group has a member: from here on partitions that lost their owner cost."""
        self._go(now_ms)
        self._counts = True

    def closes(self, now_ms: int) -> None:
        """Note that the group is empty: nobody is there who could work."""
        self._go(now_ms)
        self._counts = False
        self._since.clear()

    def works(self, key: str, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Note that a member works on further partitions."""
        self._go(now_ms)
        for each in partitions:
            self._workers[each] = key
            self._worked.add(each)
            self._end_gap(each, now_ms)

    def drops(self, key: str, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Note that a member works on these no more."""
        self._go(now_ms)
        for each in partitions:
            if self._workers.get(each) != key:
                continue
            del self._workers[each]
            self._since[each] = now_ms
            if self._is_within(now_ms):
                self._interrupted += 1
                self._dropped.add(each)

    def _end_gap(self, partition: object, now_ms: int) -> None:
        since_ms = self._since.pop(partition, None)
        if since_ms is not None and self._is_within(since_ms):
            length_ms = min(now_ms, self._window.until_ms) - since_ms
            self._longest_ms = max(self._longest_ms, length_ms)

    def _is_within(self, at_ms: int) -> bool:
        return self._window.from_ms <= at_ms <= self._window.until_ms

    def _go(self, to_ms: int) -> None:
        """Go on in time, and count what nobody works on meanwhile."""
        from_ms = self._now_ms
        self._now_ms = max(from_ms, min(to_ms, self._window.until_ms))
        length_ms = self._now_ms - from_ms
        if not self._counts or not length_ms:
            return
        if self._worked and not self._workers:
            self._stopped_ms += length_ms
        self._unowned_ms += (len(self._worked) - len(self._workers)) * length_ms

    # -- what moves --------------------------------------------------------------------------

    def computed(self, keys: tuple[str, ...], now_ms: int) -> None:
        """Note that a new target was computed for these members; `given` reports its contents."""
        self._settle()
        self._keys = keys
        self._counts_target = self._is_within(now_ms)
        self.targets += self._counts_target

    def given(self, key: str, partitions: Iterable[TopicPartition]) -> None:
        """Note what the newest target gives to a member whose part is another than before."""
        for each in partitions:
            self._targets[each] = key

    def _settle(self) -> None:
        """Compare the newest target with the one before."""
        if self._settled and self._counts_target:
            moved = moves_between(self._settled, self._targets)
            self._moved += moved
            if moved:
                fewest = fewest_moves(self._settled, self._targets, self._keys)
                self._needless += max(0, moved - fewest)
        self._settled = dict(self._targets)
        self._counts_target = False

    def costs(self, strategy: str, *, is_uniform: bool) -> SharingCosts:
        """Return the costs; nothing can be noted afterwards."""
        self._go(self._window.until_ms)
        self._settle()
        for partition in list(self._since):
            self._end_gap(partition, self._window.until_ms)
        return SharingCosts(
            strategy=strategy,
            items=self._size,
            rebalances=self.targets,
            moved=self._moved,
            needless=self._needless if is_uniform else None,
            stopped_ms=self._stopped_ms,
            unowned_ms=self._unowned_ms,
            interrupted=self._interrupted,
            longest_ms=self._longest_ms,
        )


_GOES: Final = 0
_COMES: Final = 1
_ACTS: Final = 2
_DIES: Final = 3
"""Order of what members do within one millisecond: who makes room goes first."""
_LOST: Final = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
_OF_TARGETS: Final = frozenset(
    {Event.EPOCH_BUMPED, Event.TARGET_COMPUTED, Event.TARGET_ASSIGNED, Event.TARGET_REACHED}
)
_LEFT_OUT: Final = frozenset({Event.HEARTBEAT, Event.JOIN_REQ, Event.JOIN_RESP, Event.LEAVE_REQ})
"""Events of requests, which the trace of a replay has not."""
_Action = Callable[[], None]


class Manner(Struct, frozen=True, kw_only=True):
    """How the group and its members behave; durations are milliseconds.

    Args:
        group_id: The group.
        broker_id: Its coordinator.
        assignor: Server-side assignor that members ask for; None leaves it to the broker.
        session_timeout_ms: `group.consumer.session.timeout.ms`.
        heartbeat_interval_ms: `group.consumer.heartbeat.interval.ms`.
        rebalance_timeout_ms: `max.poll.interval.ms` of the members.
        busy_ms: Time from an answer to the next poll of a member that works on something.
        max_size: `group.consumer.max.size`.
        beats_always: Whether heartbeats that change nothing are sent too.
    """

    group_id: str
    broker_id: int
    assignor: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int
    busy_ms: int
    max_size: int = NEVER_MS
    beats_always: bool = False


class ConsumerDriver:
    """Plays one episode.

    Args:
        members: Its members, not joined yet.
        topics: What they read.
        manner: How all behave.
        profile: Kafka release of the coordinator.
        ledger: Gets who works on what, and every target.
    """

    def __init__(
        self,
        members: list[Member],
        topics: Topics,
        manner: Manner,
        profile: Profile,
        ledger: Ledger,
    ) -> None:
        self.events: list[TraceEvent] = []
        self.course = Course()
        self.refused: dict[str, int] = {}
        """How many members were refused for good, by the name of the error."""
        self._members = members
        self._topics = topics
        self._manner = manner
        self._ledger = ledger
        config = CoordinatorConfig(
            broker_id=manner.broker_id,
            group_consumer_session_timeout_ms=manner.session_timeout_ms,
            group_consumer_heartbeat_interval_ms=manner.heartbeat_interval_ms,
            group_consumer_max_size=manner.max_size,
            offsets_retention_check_interval_ms=NEVER_MS,
        )
        self._config = self._endless = config
        self._coordinator = GroupCoordinator(config, profile, ids=NamedIds())
        self._coordinator.tell_heartbeats(wanted=False)
        self._coordinator.topics_changed(topics.known, (), 1)
        self._partition = partition_for(manner.group_id, config.offsets_topic_num_partitions)
        self._queue: list[tuple[int, int, int, _Action]] = []
        self._order = 0
        self._now_ms = self._until_ms = 0
        self._tokens: dict[int, Member] = {}
        self._token = 0
        self._by_id: dict[str, Member] = {}
        self._present: dict[str, str] = {}
        self._epoch = 0
        self._is_settled = True

    def run(self, start_ms: int, until_ms: int) -> list[TraceEvent]:
        """Play from `start_ms`, when the first members join, and return the core's events."""
        self._now_ms = start_ms
        self._until_ms = until_ms
        endless_ms = self._manner.session_timeout_ms + max(0, until_ms - start_ms)
        self._endless = replace(self._config, group_consumer_session_timeout_ms=endless_ms)
        self._take(self._coordinator.begin_load(self._partition, 0, start_ms))
        self._take(self._coordinator.finish_load(self._partition, ErrorCode.NONE, start_ms))
        for member in self._members:
            life = member.life
            comes_ms = start_ms if life.comes_ms is None else life.comes_ms
            self._at(comes_ms, _COMES, partial(self._join, member))
            if life.goes_ms is not None and life.departure is not Departure.STAYS:
                is_silent = life.departure is Departure.FALLS_SILENT
                rank = _GOES if life.goes_ms > comes_ms and not is_silent else _DIES
                self._at(max(life.goes_ms, comes_ms), rank, partial(self._go, member))
        while True:
            due_ms = self._coordinator.wake_up_ms()
            next_ms = self._queue[0][0] if self._queue else None
            is_timer = due_ms is not None and (next_ms is None or due_ms <= next_ms)
            at_ms = due_ms if is_timer else next_ms
            if at_ms is None or at_ms > until_ms:
                return self.events
            self._now_ms = max(self._now_ms, at_ms)
            if is_timer:
                self._take(self._coordinator.expire(self._now_ms))
            else:
                heappop(self._queue)[3]()

    def _at(self, at_ms: int, rank: int, action: _Action) -> None:
        self._order += 1
        heappush(self._queue, (at_ms, rank, self._order, action))

    # -- what members do ---------------------------------------------------------------------

    def _join(self, member: Member) -> None:
        member.is_live = True
        member.is_reconciling = False
        member.epoch = 0
        self._by_id[member.life.member_id] = member
        self._ledger.opens(self._now_ms)
        manner = self._manner
        request = joining(member, manner.group_id, manner.rebalance_timeout_ms, manner.assignor)
        self._send(member, request)

    def _go(self, member: Member) -> None:
        """End a member in its own way."""
        if not member.is_live:
            return
        self._stop(member)
        match member.life.departure:
            case Departure.LEAVES:
                member.epoch = LEAVE_EPOCH
            case Departure.STEPS_ASIDE:
                member.epoch = STEP_ASIDE_EPOCH
            case _:
                return
        self._send(member, beating(member, self._manner.group_id))

    def _stop(self, member: Member) -> None:
        """Have a member work on nothing, and act no more."""
        self._ledger.drops(member.key, sorted(member.has), self._now_ms)
        member.has = member.target = frozenset()
        member.is_live = False
        member.turn += 1

    def _beat(self, member: Member, turn: int) -> None:
        """Send a heartbeat; a settled member goes on with the last two before it goes.

        The session of a member that dies or steps aside runs from its very last heartbeat.
        """
        if not member.is_live or member.turn != turn:
            return
        manner, goes_ms = self._manner, member.life.goes_ms
        intervals = 1
        if self._is_settled and not member.is_reconciling and not manner.beats_always:
            left_ms = (self._until_ms if goes_ms is None else goes_ms) - self._now_ms
            intervals = max(1, left_ms // manner.heartbeat_interval_ms - 1)
        own = self._endless if intervals > 1 else None
        self._coordinator.reconfigure(self._config, {manner.group_id: own})
        self._send(member, beating(member, manner.group_id), intervals)
        self._coordinator.reconfigure(self._config, {manner.group_id: None})

    def _reconcile(self, member: Member, turn_of_life: object) -> None:
        """Give up and take over at a poll, and acknowledge at once."""
        if not member.is_live or turn_of_life is not member.life or not member.is_reconciling:
            return
        member.is_reconciling = False
        has, target = member.has, member.target
        self._ledger.drops(member.key, sorted(has - target), self._now_ms)
        self._ledger.works(member.key, sorted(target - has), self._now_ms)
        member.has = target
        told = self._topics.told(target)
        self._send(member, beating(member, self._manner.group_id, told))

    # -- requests ----------------------------------------------------------------------------

    def _send(
        self, member: Member, request: ConsumerGroupHeartbeatRequest, intervals: int = 1
    ) -> None:
        """Send a heartbeat; the next is due after so many intervals."""
        self._token += 1
        self._tokens[self._token] = member
        member.turn += 1
        member.sent_ms = self._now_ms
        context = RequestContext(
            token=self._token, api_version=HEARTBEAT_VERSION, client_id=member.life.client
        )
        self._take(self._coordinator.handle(request, context, self._now_ms))
        if member.is_live:
            self._schedule(member, intervals)

    def _schedule(self, member: Member, intervals: int = 1) -> None:
        at_ms = member.sent_ms + intervals * self._manner.heartbeat_interval_ms
        self._at(at_ms, _ACTS, partial(self._beat, member, member.turn))

    def _wake(self) -> None:
        """Have the heartbeats that were left out until now go on as if all had been sent."""
        self._is_settled = False
        interval_ms = self._manner.heartbeat_interval_ms
        for member in self._by_id.values():
            if member.is_live:
                beats = (self._now_ms - member.sent_ms - 1) // interval_ms
                member.sent_ms += max(0, beats) * interval_ms
                member.turn += 1
                self._schedule(member)

    def _answered(self, member: Member, response: ConsumerGroupHeartbeatResponse) -> None:
        if not member.is_live:
            return
        error = response.error_code
        if error in _LOST:
            self._stop(member)
            self._join(member)
        elif error is not ErrorCode.NONE:
            self.refused[error.name] = self.refused.get(error.name, 0) + 1
            self._stop(member)
        else:
            member.epoch = response.member_epoch
            if response.assignment is not None:
                member.target = self._topics.partitions_of(response.assignment)
            if member.target != member.has and not member.is_reconciling:
                member.is_reconciling = True
                delay_ms = self._manner.busy_ms if member.has else 0
                reconcile = partial(self._reconcile, member, member.life)
                self._at(self._now_ms + delay_ms, _ACTS, reconcile)

    # -- what the core tells -----------------------------------------------------------------

    def _take(self, result: CoordinatorResult) -> None:
        for event in result.events:
            self._note(event)
        for reply in result.replies:
            self._reply(reply)

    def _reply(self, reply: Reply) -> None:
        member = self._tokens.pop(reply.token)
        if not isinstance(reply.response, ConsumerGroupHeartbeatResponse):
            raise InvariantViolation(f"a heartbeat was answered by {type(reply.response).__name__}")
        self._answered(member, reply.response)

    def _note(self, event: TraceEvent) -> None:
        if event.event not in _LEFT_OUT:
            self.events.append(event)
        if event.event in _OF_TARGETS:
            self._note_target(event)
        else:
            self._note_member(event)

    def _note_target(self, event: TraceEvent) -> None:
        match event.event:
            case Event.EPOCH_BUMPED:
                self._epoch = event.generation or 0
                if self._is_settled:
                    self._wake()
            case Event.TARGET_COMPUTED:
                self._ledger.computed(tuple(self._present.values()), self._now_ms)
            case Event.TARGET_ASSIGNED:
                given = decode_assignment(event.assignment or b"").partitions
                self._ledger.given(self._by_id[event.member_id or ""].key, given)
            case _:
                self._is_settled = (event.generation or 0) >= self._epoch

    def _note_member(self, event: TraceEvent) -> None:
        member = self._by_id.get(event.member_id or "")
        match event.event:
            case Event.MEMBER_ADDED if member is not None:
                self._present[member.life.member_id] = member.key
            case Event.STATIC_REPLACED if member is not None:
                self._return_of(member, event.attrs.get("old_member_id", ""))
            case Event.MEMBER_LEFT if TEMPORARY not in event.attrs:
                self._present.pop(event.member_id or "", None)
            case Event.MEMBER_FAILED | Event.MEMBER_KICKED:
                self._present.pop(event.member_id or "", None)
                if member is not None and not member.is_live:
                    self._absent(member, is_dead=True)
            case Event.GROUP_EMPTY:
                self._ledger.closes(self._now_ms)
            case _:
                pass

    def _return_of(self, member: Member, old_member_id: str) -> None:
        """Note that a static member is back without another target."""
        self._present.pop(old_member_id, None)
        self._present[member.life.member_id] = member.key
        former = self._by_id.get(old_member_id)
        self.course.returns_ms.append(self._now_ms)
        if former is not None:
            self._absent(former, is_dead=False)

    def _absent(self, member: Member, *, is_dead: bool) -> None:
        goes_ms = member.life.goes_ms
        if goes_ms is not None:
            self.course.absences.append(Absence(member.key, goes_ms, self._now_ms, is_dead))


_LEAD_MS: Final = 120_000
"""Time for the members of the beginning to join and to share everything out."""
_REBALANCE_TIMEOUT_MS: Final = 300_000
"""Default of `max.poll.interval.ms`."""
ASSUMED: Final = (
    "members come and go as the classic ones did; one that was late to rejoin leaves instead",
    "members give up and take over at a poll, by which the slowest one usually rejoined, too",
    "settings of the broker that are not given are Kafka's defaults, as group.consumer.*",
    "a static member that was replaced had closed in good order, with a heartbeat of epoch -2",
)
"""What figures under the consumer protocol assume beside the rest."""


class EpochRun(Struct, frozen=True):
    """One episode under the consumer protocol.

    Args:
        events: Events of the core, from the source's first line on.
        notes: What is special about it, one sentence each.
    """

    events: list[TraceEvent]
    figures: RunFigures
    notes: tuple[str, ...]


class Asked(Struct, frozen=True, kw_only=True):
    """What to play an episode with.

    Args:
        work: What the members share out.
        until_ms: Where the run ends, milliseconds of the trace.
        windows: Windows of time, milliseconds, that have figures of their own.
        shown: The time that counts.
    """

    work: GroupWork
    settings: Settings
    profile: Profile
    until_ms: int
    windows: tuple[tuple[int, int], ...] = ()
    shown: Shown = ALWAYS


def play(plan: GroupPlan, asked: Asked, dropped: set[object]) -> EpochRun:
    """Play a plan's members as members of the consumer protocol.

    Args:
        plan: The plan; it is not changed.
        asked: What to play it with.
        dropped: Gets the partitions that lost a working owner.
    """
    work = asked.work
    told = lives_of(plan)
    topics = Topics(work.topics)
    every = tuple(work.topics)
    members = [Member(life, work.subscriptions.get(life.client, every)) for life in told.lives]
    first_ms = plan.scripts[0].start_ms if plan.scripts else plan.episode.first_ms
    ends = (first_ms, asked.until_ms)
    window = Window(*(asked.shown.nearest_us(at_ms * 1000) // 1000 for at_ms in ends))
    ledger = Ledger(work.size, window, dropped)
    manner = manner_of(plan, asked.settings)
    driver = ConsumerDriver(members, topics, manner, asked.profile, ledger)
    first_us = plan.episode.first_ms * 1000
    events = [
        event
        for event in driver.run(plan.episode.first_ms - _LEAD_MS, asked.until_ms)
        if event.ts_us >= first_us
    ]
    is_uniform = len({frozenset(own) for own in work.subscriptions.values()}) <= 1
    sharing = ledger.costs(f"server:{manner.assignor}", is_uniform=is_uniform)
    notes = []
    if told.own_rejoins:
        notes.append(
            f"{told.own_rejoins} rejoins of members for reasons of their own are left out, because "
            "the trace does not tell what changed"
        )
    for error, count in driver.refused.items():
        notes.append(f"{count} members are refused with {error}, and do not come back")
    told_figures = figures(events, driver.course, sharing, asked.windows, asked.shown)
    return EpochRun(events, told_figures, tuple(notes))


def manner_of(plan: GroupPlan, settings: Settings) -> Manner:
    """Return how the members of a plan behave under the consumer protocol."""
    return Manner(
        group_id=plan.episode.group_id,
        broker_id=plan.episode.lines[0].broker_id or 0,
        assignor=settings.group_remote_assignor or SERVER_ASSIGNORS[0],
        session_timeout_ms=settings.group_consumer_session_timeout_ms
        or CONSUMER_SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms
        or CONSUMER_HEARTBEAT_INTERVAL_MS,
        rebalance_timeout_ms=settings.rebalance_timeout_ms or _REBALANCE_TIMEOUT_MS,
        busy_ms=Pace(plan).own_ms,
        max_size=settings.group_max_size or NEVER_MS,
    )
