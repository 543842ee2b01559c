"""A consumer process: the application's loop around the port of a consumer coordinator.

The loop polls, processes the records as the consumer's law says, commits as its policy says, and
polls again. Records are only counted. Fatal errors of a poll or a commit end the application.

What a consumer is given and gives up, as events of the trace.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.async_consumer import AsyncConsumer
from coordinator_sim.clients.config import OffsetReset
from coordinator_sim.clients.consumer_coordinator import ConsumerCoordinator
from coordinator_sim.clients.consumer_models import api_versions_of, make_consumer
from coordinator_sim.clients.contract import ConsumerPort
from coordinator_sim.clients.effects import (
    CallbackKind,
    CommitCompleted,
    ResetPositions,
    RunCallback,
)
from coordinator_sim.clients.exceptions import COMMIT_FAILED, RETRIABLE, WAKEUP
from coordinator_sim.clients.librdkafka import LibrdkafkaNewConsumer
from coordinator_sim.clients.port_core import NOTIFICATION_TOKEN
from coordinator_sim.clients.streams_member import StreamsMember
from coordinator_sim.clock import Action
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.sim.client_process import ClientProcess
from coordinator_sim.sim.consumer_settings import client_settings, is_new
from coordinator_sim.sim.environment import Call, Scheduled
from coordinator_sim.sim.idle_rhythm import IdleRhythm, Landing
from coordinator_sim.sim.processing import (
    Pace,
    Records,
    count_of,
    longest_busy_us,
    pace_of,
    split,
    stalls_in,
)
from coordinator_sim.sim.scenario.work import PerPoll
from coordinator_sim.sim.scenario.world import ConsumerGroupSpec, ConsumerSpec
from coordinator_sim.sim.topic_logs import AwaitedRecords
from coordinator_sim.sim.work_ledger import WorkLedger
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event, OffsetEntry

GIVEN_UP: Final = {
    CallbackKind.PARTITIONS_REVOKED: Event.REVOKED,
    CallbackKind.PARTITIONS_LOST: Event.LOST,
}
"""The event of each callback about partitions given up."""


class Tell(Protocol):
    """Records an event of one process; `columns` are columns of `TraceEvent`."""

    def __call__(self, event: Event, **columns: object) -> None:
        """Record the event."""
        ...


def tell_assigned(tell: Tell, consumer: ConsumerPort, added: Sequence[TopicPartition]) -> None:
    """Record what a member of the consumer protocol owns now, and what of it is new.

    In a classic group the coordinator records it: the leader's decision passes through there.
    """
    if isinstance(consumer, AsyncConsumer | LibrdkafkaNewConsumer):
        # librdkafka owns what is new when the application has taken it over.
        owned = tuple(sorted(dict.fromkeys((*consumer.owned_partitions, *added))))
        tell(
            Event.ASSIGNED,
            generation=consumer.generation_id,
            member_id=consumer.member_id,
            protocol_type="streams" if isinstance(consumer, StreamsMember) else "consumer",
            assignment=encode_assignment(ConsumerAssignment(partitions=owned)),
            attrs={"resources": " ".join(tp.resource() for tp in added)},
        )


def tell_given_up(
    tell: Tell, consumer: ConsumerPort, event: Event, partitions: Sequence[TopicPartition]
) -> None:
    """Record which partitions are given up, and how far each was consumed."""
    tell(
        event,
        generation=consumer.generation_id,
        member_id=consumer.member_id,
        attrs={"resources": " ".join(tp.resource() for tp in partitions)},
    )
    positions = consumer.positions
    entries = tuple(
        OffsetEntry(tp.topic, tp.partition, positions[tp]) for tp in partitions if tp in positions
    )
    if entries:
        tell(Event.POSITION, member_id=consumer.member_id, offsets=entries)


def take_records(
    world: World,
    consumer: ConsumerPort,
    ledger: WorkLedger,
    host: str,
    awaited: AwaitedRecords,
    fetched: dict[TopicPartition, int],
) -> list[Records]:
    """Move positions past up to `max.poll.records` records, and return these.

    Args:
        world: The topics, and the network to their leaders.
        consumer: Whose positions they are.
        ledger: Told what is held.
        host: Member on whose machine the consumer runs.
        awaited: What it watches.
        fetched: The offset after the fetched records of each partition that polls have not returned
            yet, in the order of their fetches; is changed.
    """
    fetchable = consumer.fetchable
    if fetched or not world.network.is_whole:
        return _fetched_records(world, consumer, ledger, host, fetched)
    if awaited.watches(fetchable):
        arrived = awaited.take(world.environment.now_us, consumer.max_poll_records)
        if arrived is not None:
            for partition, first, end in arrived:
                ledger.hold(partition, first, end)
                consumer.advance_position(partition, end)
            return [Records(*each) for each in arrived]
    level = _level_records(world, consumer, fetchable)
    if level is not None:
        if ledger.is_on:
            position = next(iter(fetchable.values()))
            ledger.hold_level(fetchable, position, level[0].end if level else position)
        return level
    found = _fetched_records(world, consumer, ledger, host, fetched)
    if world.topic_logs.has_loads and not found:
        awaited.watch(fetchable)
    return found


def _fetched_records(
    world: World,
    consumer: ConsumerPort,
    ledger: WorkLedger,
    host: str,
    fetched: dict[TopicPartition, int],
) -> list[Records]:
    """Fetch from all partitions, and take the records that were fetched first.

    What a poll has no room for stays fetched, and its partition is not fetched from meanwhile: no
    partition waits for the others' whole backlog.

    Source: kafka 4.4, FetchCollector.collectFetch, AbstractFetch.fetchablePartitions.
    """
    is_whole, is_told = world.network.is_whole, ledger.is_on
    now_us, end_offset = world.environment.now_us, world.topic_logs.end_offset
    fetchable = consumer.fetchable
    for partition, position in fetchable.items():
        end = end_offset(partition, now_us)
        if is_told:
            ledger.hold(partition, position, end)
        if end > position and (is_whole or world.reaches_leader(host, partition)):
            fetched.setdefault(partition, end)
    room = consumer.max_poll_records
    found: list[Records] = []
    for partition, fetched_end in list(fetched.items()):
        position = fetchable.get(partition, fetched_end)
        end = min(fetched_end, end_offset(partition, now_us))
        taken = min(end - position, room)
        if taken > 0:
            consumer.advance_position(partition, position + taken)
            found.append(Records(partition, position, position + taken))
            room -= taken
        if taken >= end - position:
            del fetched[partition]
        if not room:
            break
    return found


def _level_records(
    world: World, consumer: ConsumerPort, fetchable: Mapping[TopicPartition, int]
) -> list[Records] | None:
    """Take all records of partitions that are level with each other, as most always are.

    Returns:
        None, and nothing is taken, where they are not level, are ahead of their ends, or the poll
        has no room for all.
    """
    offsets = set(fetchable.values())
    if len(offsets) != 1:
        return None
    position = offsets.pop()
    end = world.topic_logs.common_end(fetchable, world.environment.now_us)
    if end is None:
        return None
    if not 0 <= (end - position) * len(fetchable) <= consumer.max_poll_records:
        return None
    if end == position:
        return []
    if not consumer.advance_all(fetchable, end):
        return None
    return [Records(partition, position, end) for partition in fetchable]


POLL_TIMEOUT_MS: Final = 500
"""Timeout that the application passes to `poll`; short enough to notice a stop request soon."""
CLOSE_TIMEOUT_MS: Final = 30_000
"""Default timeout of `KafkaConsumer.close`."""
_FETCH_US: Final = 1_000
"""Time from a poll to available records: about a round trip to a partition leader."""
_SLACK_MS: Final = 1_000
"""More than a drawn message and the heartbeat thread's next look take."""
_SURVIVABLE: Final = (WAKEUP, COMMIT_FAILED)

AfterCommit = Callable[[str | None], None]
"""Continuation after a commit, given the name of the exception, None for success."""


class ConsumerProcess(ClientProcess):
    """One incarnation of a consumer.

    Args:
        world: Shared parts of the run.
        spec: The consumer.
        group: The consumer's group.
        on_exit: Called once when the process has ended.
        host: Member in whose process the consumer runs; None for a process of its own.
        attrs: Attributes of its work in the trace.
        consumer: The port of a member that is no plain consumer.
    """

    __slots__ = (
        "_after_commit",
        "_awaited",
        "_busy_until_us",
        "_busy_us",
        "_callback_us",
        "_consumer",
        "_done",
        "_fetched",
        "_is_polling",
        "_is_stopping",
        "_law",
        "_ledger",
        "_next_commit_us",
        "_on_exit",
        "_pace",
        "_pattern",
        "_policy",
        "_poll_timeout_ms",
        "_processing",
        "_since_commit",
        "_slow_us",
        "_started_us",
        "_taken",
    )

    def __init__(  # noqa: PLR0913 - a consumer, and where it runs, by keyword
        self,
        world: World,
        spec: ConsumerSpec,
        group: ConsumerGroupSpec,
        *,
        on_exit: Action,
        host: str | None = None,
        attrs: dict[str, str] | None = None,
        consumer: ConsumerPort | None = None,
    ) -> None:
        settings = client_settings(spec, group)
        self._consumer = consumer or make_consumer(
            spec.client,
            settings,
            client_id=spec.name,
            group_id=group.group_id,
            topics=group.topics if spec.topics is None else spec.topics,
            assignors=tuple(make_consumer_assignor(name) for name in group.assignors),
            bootstrap=world.bootstrap(),
            member_id=world.new_member_id() if is_new(settings) else "",
            jitter=world.choices,
        )
        super().__init__(
            world,
            spec.name,
            group_id=group.group_id,
            port=self._consumer,
            host=host,
            client=spec.client,
        )
        self._api_versions = api_versions_of(spec.client)
        self._pattern = group.pattern
        self._ledger = WorkLedger(world, group_id=group.group_id, client_id=spec.name, attrs=attrs)
        self._awaited = AwaitedRecords(world.topic_logs)
        self._fetched: dict[TopicPartition, int] = {}
        self._law = spec.processing or PerPoll(spec.processing_ms)
        self._policy = spec.commits
        self._callback_us = spec.callback_ms * US_PER_MS
        self._slow_us = 0
        self._poll_timeout_ms = POLL_TIMEOUT_MS
        self._is_polling = False
        self._is_stopping = False
        self._taken: list[Records] = []
        """Records returned by the last poll and not yet processed."""
        self._processing: list[Records] = []
        """Records being processed since `_started_us` at `_pace`."""
        self._done: dict[TopicPartition, int] = {}
        """For every held partition: the offset after the last processed record."""
        self._started_us = 0
        self._busy_us = self._busy_until_us = 0
        self._pace = Pace(0, 0)
        self._since_commit = 0
        self._next_commit_us: int | None = None
        self._after_commit: tuple[int, AfterCommit] | None = None
        self._on_exit = on_exit

    def start(self) -> None:
        """Subscribe by the pattern, if there is one, and poll for the first time."""
        consumer = self._consumer
        match consumer:
            case ConsumerCoordinator() if self._pattern is not None:
                self._run(consumer.subscribe_pattern(self._pattern, self._now_ms()))
            case AsyncConsumer() if self._pattern is not None:
                self._run(consumer.subscribe_regex(self._pattern, self._now_ms()))
            case LibrdkafkaNewConsumer() if self._pattern is not None:
                expression = "^" + self._pattern.removeprefix("^")
                self._run(consumer.subscribe((expression,), self._now_ms()))
            case _:
                pass
        self._poll()

    def stop(self) -> None:
        """Close when the application is between two polls; wake up a poll in progress."""
        if self._is_stopping:
            return
        self._is_stopping = True
        if self._is_polling:
            self._later(0, self._wake_up)

    def pause(self, for_us: int) -> None:
        """Freeze the process; it neither processes records nor holds partitions meanwhile."""
        if not self._is_paused:
            self._count_done()
            self._ledger.suspend()
        super().pause(for_us)

    def be_slow(self, for_us: int) -> None:
        """Process longer by the given time after the next poll."""
        self._slow_us += for_us

    @property
    def busy_us(self) -> int:
        """Time in which it has processed records so far, in microseconds."""
        return self._busy_us - max(self._busy_until_us - self._environment.now_us, 0)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Subscribe to other topics."""
        self._later(0, partial(self._subscribe, topics))

    def _subscribe(self, topics: tuple[str, ...]) -> None:
        self._run(self._consumer.subscribe(topics, self._now_ms()))

    def _wake_up(self) -> None:
        if self._is_polling:
            self._run(self._consumer.wakeup(self._now_ms()))

    def _thaw(self) -> None:
        self._ledger.resume()
        super()._thaw()

    # The application's loop: poll, process, commit.

    def _poll(self) -> None:
        if self._is_stopping:
            self._close()
            return
        if self._policy.when == "interval":
            self._commit_in_time()
        self._is_polling = True
        self._run(self._consumer.poll(self._now_ms(), self._poll_timeout_ms))
        if self._is_polling and self._consumer.fetchable:
            until_us = self._environment.now_us + self._poll_timeout_ms * US_PER_MS
            self._later(_FETCH_US, partial(self._fetch, until_us))

    def _close(self) -> None:
        self._run(self._consumer.close(self._now_ms(), CLOSE_TIMEOUT_MS))

    def _commit_in_time(self) -> None:
        now_us = self._environment.now_us
        if self._next_commit_us is not None and now_us < self._next_commit_us:
            return
        if self._next_commit_us is not None:
            self._run(self._consumer.commit(self._done, sync=False, now_ms=self._now_ms())[1])
        self._next_commit_us = now_us + self._policy.interval_ms * US_PER_MS

    def _fetch(self, until_us: int) -> None:
        """End the poll when records are available; wait for those of a load up to an instant.

        Topics of a constant rate are looked at once a poll.
        """
        if not self._is_polling or not self._consumer.awaits_records:
            return
        deleted = self._world.topic_logs.deleted
        if deleted and any(each.topic in deleted for each in self._consumer.fetchable):
            self._run(self._consumer.topic_unknown(self._now_ms()))
        if self._take_records():
            self._run(self._consumer.fetch_completed(self._now_ms()))
            return
        now_us = self._environment.now_us
        arrives_us = self.next_record_us()
        if arrives_us is not None and now_us < arrives_us < until_us - _FETCH_US:
            self._later(arrives_us + _FETCH_US - now_us, partial(self._fetch, until_us))

    def _take_records(self) -> bool:
        """Take the records that there are; return whether there were any."""
        taken = take_records(
            self._world, self._consumer, self._ledger, self._host, self._awaited, self._fetched
        )
        self._taken += taken
        return bool(taken)

    def _on_poll_returned(self, error: str | None) -> None:
        self._is_polling = False
        self._survive(error, "poll")
        if self._is_stopping and not self._taken:
            self._later(0, self._poll)
            return
        self._pace = pace_of(self._law, self._world.choices, self._name)
        percents = self._world.slow_percents.get(self._group_id)
        if percents:
            self._pace = self._pace.slowed(max(percents))
        if self._slow_us:
            self._pace = self._pace._replace(lead_us=self._pace.lead_us + self._slow_us)
            self._slow_us = 0
        if self._taken and self._policy.when == "before":
            self._commit_and_wait(self._consumer.positions, self._process)
        else:
            self._process()

    def _process(self, commit_error: str | None = None) -> None:
        """Process the taken records, at most as many as may precede the next commit."""
        self._survive(commit_error, "commit")
        self._processing, self._taken = self._taken, []
        if self._policy.when == "every":
            room = self._policy.records - self._since_commit
            self._processing, self._taken = split(self._processing, room)
            self._since_commit += count_of(self._processing)
        self._started_us = self._world.environment.now_us
        poison = self._world.topic_logs.poison
        if poison:
            self._pace = self._pace._replace(stalls=stalls_in(self._processing, poison))
        busy_us = self._pace.busy_us(count_of(self._processing))
        if self._processing:
            self._busy_until_us = self._started_us + busy_us
            self._busy_us += busy_us
        self._later(busy_us, self._processed)

    def _processed(self) -> None:
        done, self._processing = self._processing, []
        if self._taken:
            self._pace = self._pace._replace(lead_us=0)
        if self._ledger.is_on or self._policy.when != "auto":
            self._ledger.processed_all(done)
            if self._policy.when != "auto":
                self._done.update((partition, end) for partition, _, end in done)
        match self._policy.when:
            case "sync" if done:
                self._commit_and_wait(self._done, self._go_on)
            case "every" if self._since_commit >= self._policy.records:
                self._since_commit = 0
                self._commit_and_wait(self._done, self._go_on)
            case "async" if done:
                self._run(self._consumer.commit(self._done, sync=False, now_ms=self._now_ms())[1])
                self._go_on()
            case _:
                self._go_on()

    def _go_on(self, commit_error: str | None = None) -> None:
        """Process the rest of the poll's records, or poll again."""
        self._survive(commit_error, "commit")
        if self._taken:
            self._process()
        else:
            self._poll()

    def _survive(self, error: str | None, call: str) -> None:
        """Stop the application if the call raised an error that applications do not catch."""
        if error is None or error in RETRIABLE or error in _SURVIVABLE:
            return
        self._record(Event.LIFECYCLE, reason_text=f"{call} raised {error}")
        self._is_stopping = True

    def _commit_and_wait(self, offsets: Mapping[TopicPartition, int], then: AfterCommit) -> None:
        token, effects = self._consumer.commit(offsets, sync=True, now_ms=self._now_ms())
        self._after_commit = (token, then)
        self._run(effects)

    def _on_commit_completed(self, completed: CommitCompleted) -> None:
        after = self._after_commit
        if after is not None and after[0] == completed.token:
            self._after_commit = None
            after[1](completed.error)

    # Calm time, left out by `calm`.

    @property
    def is_at_ease(self) -> bool:
        """Whether it is a stable member with nothing under way but its rhythms."""
        consumer = self._consumer
        is_disturbed = self._is_paused or self._is_stopping or bool(self._slow_us)
        return (
            isinstance(consumer, ConsumerCoordinator)
            and not is_disturbed
            and self._reading.is_true
            and consumer.is_undisturbed(self._now_ms())
        )

    def bears(self, longest_pause_us: int, dilation: int) -> bool:
        """Whether no pause and no slow poll can cost it its place in the group.

        Args:
            longest_pause_us: Of the pauses that a world draws.
            dilation: How many times as long pauses make anything at most.
        """
        busy_us = longest_busy_us(self._law, self._consumer.max_poll_records)
        cycle_us = self._poll_timeout_ms * US_PER_MS + busy_us
        return isinstance(self._consumer, ConsumerCoordinator) and self._consumer.bears(
            silence_ms=longest_pause_us // US_PER_MS + _SLACK_MS,
            poll_ms=(cycle_us * dilation + longest_pause_us) // US_PER_MS + _SLACK_MS,
        )

    # Idle time, skipped by `elision`.

    @property
    def member_key(self) -> tuple[str, str]:
        """The group and the member id that it has now."""
        return self._group_id, self._consumer.member_id

    def ends_processing(self, event: Scheduled) -> bool:
        """Whether a pending event is the end of this application's processing."""
        action = event.action if type(event) is Call else None
        inner = action.args[0] if isinstance(action, partial) else None
        return isinstance(inner, partial) and inner.args == (self._processed,)

    def idle_rhythm(self, processed_us: int | None) -> IdleRhythm | None:
        """Return the rhythm of an application without records; None for any other.

        Args:
            processed_us: When it ends the processing in progress; None within a poll.
        """
        consumer, law, latency_us = self._consumer, self._law, self._network.constant_us
        if (
            not isinstance(consumer, ConsumerCoordinator)
            or not isinstance(law, PerPoll)
            or latency_us is None
            or not self._is_idle()
        ):
            return None
        phases = consumer.idle_phases(self._now_ms())
        if phases is None or (phases.poll_ends_ms is None) == (processed_us is None):
            return None
        busy_us = pace_of(law, self._world.choices, self._name).busy_us(0)
        if phases.poll_ends_ms is not None:
            processed_us = phases.poll_ends_ms * US_PER_MS + busy_us
        elif processed_us is None or processed_us - self._environment.now_us > busy_us:
            return None
        return IdleRhythm(
            phases=phases,
            next_poll_us=processed_us,
            poll_us=self._poll_timeout_ms * US_PER_MS,
            busy_us=busy_us,
            latency_us=latency_us,
        )

    def _is_idle(self) -> bool:
        """Whether it lives undisturbed, and has neither records nor commits to come."""
        is_disturbed = self._is_paused or self._is_stopping or bool(self._late)
        if is_disturbed or not self._is_alive or not self._reading.is_true:
            return False
        if not self._ledger.is_level(self._consumer.fetchable):
            return False
        works = bool(self._taken or self._processing or self._slow_us or self._after_commit)
        if (
            works
            or self._policy.when == "interval"
            or self._world.slow_percents.get(self._group_id)
        ):
            return False
        now_us, logs = self._environment.now_us, self._world.topic_logs
        return all(each.is_quiet for each in self._connections.values()) and all(
            not (logs.grows(partition.topic) or partition.topic in logs.deleted)
            and logs.end_offset(partition, now_us) <= position
            for partition, position in self._consumer.fetchable.items()
        )

    def next_record_us(self) -> int | None:
        """Return when the first record of a load comes that it has not taken; None for never."""
        logs, awaited = self._world.topic_logs, self._awaited
        if not logs.has_loads:
            return None
        fetchable = self._consumer.fetchable
        watches = awaited.watches(fetchable)
        return awaited.first_us if watches else logs.first_arrival_us(fetchable)

    def skip_idle(self, landing: Landing) -> None:
        """Be as if the time up to a poll had passed.

        The clock has dropped all its calls; `poll_again` and `expect_beat` ask for new ones.
        """
        consumer = self._consumer
        if not isinstance(consumer, ConsumerCoordinator):
            raise InvariantViolation(f"{self._name} has no idle rhythm, and cannot skip")
        phases = consumer.idle_phases(self._now_ms())
        refreshes = landing.skip.refresh_count
        if phases is not None and refreshes:
            choices, draws = self._world.choices, phases.backoff_draws
            choices.skip("least-loaded-node", self._name, refreshes)
            choices.skip("metadata-backoff", self._name, (refreshes - 1) * draws)
        self._is_polling = False
        self.forget_alarm()
        consumer.skip_idle(landing.skip)

    def poll_again(self, landing: Landing) -> None:
        """Process nothing up to the poll of the landing."""
        self._later(landing.poll_us - self._environment.now_us, self._processed)

    def expect_beat(self, landing: Landing) -> None:
        """Set the alarm for the next heartbeat."""
        self.set_alarm(landing.beat_us)

    # Callbacks and the end.

    def _complete_callback(self, token: int) -> None:
        self._run(self._consumer.callback_completed(token, None, self._now_ms()))

    def _on_callback(self, callback: RunCallback) -> None:
        if callback.kind is CallbackKind.PARTITIONS_ASSIGNED and callback.partitions:
            tell_assigned(self._record, self._consumer, callback.partitions)
        event = GIVEN_UP.get(callback.kind)
        if event is not None and callback.partitions:
            tell_given_up(self._record, self._consumer, event, callback.partitions)
            self._awaited.forget()
            for partition in callback.partitions:
                self._ledger.let_go(partition)
                self._done.pop(partition, None)
        if callback.token == NOTIFICATION_TOKEN:
            return
        revoked = callback.kind is CallbackKind.PARTITIONS_REVOKED and callback.partitions
        if revoked and self._policy.when != "auto" and self._policy.on_revoke:
            self._later(self._callback_us, partial(self._commit_revoked, callback))
        else:
            self._later(self._callback_us, partial(self._complete_callback, callback.token))

    def _on_reset(self, wanted: ResetPositions) -> None:
        """Start partitions at 0 or at their present end."""
        now_us = self._world.environment.now_us
        end_offset = self._world.topic_logs.end_offset
        to_end = wanted.to is OffsetReset.LATEST
        found = {tp: end_offset(tp, now_us) if to_end else 0 for tp in wanted.partitions}
        self._run(self._consumer.positions_found(found, self._now_ms()))

    def _commit_revoked(self, callback: RunCallback) -> None:
        positions = self._consumer.positions
        given_up = {tp: positions[tp] for tp in callback.partitions if tp in positions}
        self._commit_and_wait(given_up, partial(self._committed_revoked, callback))

    def _committed_revoked(self, callback: RunCallback, error: str | None) -> None:
        # A wake-up of the poll ends the commit in its callback; it is then tried again.
        # Source: kafka trunk, WorkerSinkTask.doCommitSync.
        if error == WAKEUP:
            self._commit_revoked(callback)
        else:
            self._complete_callback(callback.token)

    def _on_gone(self) -> None:
        if not self._is_paused:
            self._count_done()
        self._ledger.close()
        self._on_exit()

    def _count_done(self) -> None:
        """Record how far the taken records are processed at this instant."""
        elapsed_us = self._environment.now_us - self._started_us
        done = self._pace.done_after(elapsed_us, count_of(self._processing))
        for partition, _, end in split(self._processing, done)[0]:
            self._ledger.processed(partition, end)
