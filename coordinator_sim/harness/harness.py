"""One broker in virtual time, operated by verbs: for tests, transcripts, comparisons.

The verbs are those of the oracle's line protocol: call, advance, topics, elect, resign, append,
hold, commit, fail. Each returns a `Step` with everything it caused, and the instant of each answer.
The log outlives the coordinator's leadership, so `elect` after `resign` is a failover.

A stand-in share coordinator: succeeds immediately, on release, or never.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.groups.group_apis import GroupApis
from coordinator_sim.broker.groups.group_checks import offers_of
from coordinator_sim.broker.metadata.image import Topic, Topics
from coordinator_sim.broker.metadata.zookeeper_offsets import ZooKeeperOffsets
from coordinator_sim.broker.security.authorizer import Authorizer
from coordinator_sim.clock.timer_queue import Timer
from coordinator_sim.coordinator.contract import (
    CoordinatorConfig,
    CoordinatorResult,
    DeletedTopic,
)
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.coordinator.effects import InternalTopic
from coordinator_sim.coordinator.modern.share.persister import (
    PersisterAnswer,
    PersisterCall,
    answer_alike,
)
from coordinator_sim.coordinator.topics import KnownTopic
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.completion import CompleteTransaction
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, Profile
from coordinator_sim.kafka.seeded_ids import SeededIds
from coordinator_sim.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from coordinator_sim.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from coordinator_sim.messages.records import LogBatch, LogRecord
from coordinator_sim.messages.requests import GroupRequest, Response
from coordinator_sim.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest
from coordinator_sim.trace.events import TraceEvent


class StandInPersister:
    """Answers the calls of a group coordinator without keeping any state.

    Attributes:
        holds: Whether calls to come wait for `release`; otherwise each succeeds at once.
        calls: The calls since they were last looked at, in order.
    """

    def __init__(self) -> None:
        self.holds = False
        self.calls: list[PersisterCall] = []
        self._held: deque[PersisterCall] = deque()

    def asked(self, call: PersisterCall) -> PersisterAnswer | None:
        """Return the answer to a call; None for one that is held."""
        self.calls.append(call)
        if self.holds:
            self._held.append(call)
            return None
        return answer_alike(call.request)

    def release(self) -> PersisterCall | None:
        """Return the oldest call that is held, which is held no longer; None if there is none."""
        return self._held.popleft() if self._held else None


def outcome(call: PersisterCall, error: ErrorCode, *, thrown: bool) -> PersisterAnswer:
    """Return the answer that has this error: in each partition, or of the call as a whole."""
    return PersisterAnswer(failure=error) if thrown else answer_alike(call.request, error)


START_MS = 1_000_000
"""Start of virtual time by default."""


class TimedReply(Struct, frozen=True):
    """An answer and the instant it was sent."""

    at_ms: int
    token: int
    response: Response
    internal_topics: tuple[InternalTopic, ...] = ()


class Step(Struct, frozen=True, kw_only=True):
    """Effects of one verb, in order.

    Args:
        token: Token of the request that `call` sent; None for other verbs.
    """

    now_ms: int
    token: int | None = None
    replies: tuple[TimedReply, ...] = ()
    batches: tuple[LogBatch, ...] = ()
    events: tuple[TraceEvent, ...] = ()

    @property
    def response(self) -> Response | None:
        """Answer to this step's own request; None while it is parked."""
        for reply in self.replies:
            if reply.token == self.token:
                return reply.response
        return None


class FailingAppends:
    """An append policy that refuses the next appends on demand."""

    def __init__(self) -> None:
        self._error = ErrorCode.NONE
        self._count = 0

    def fail(self, error: ErrorCode, count: int) -> None:
        """Refuse the next `count` appends with this error."""
        self._error = error
        self._count = count

    def append(self, batch: LogBatch) -> ErrorCode:  # noqa: ARG002 - any batch may fail
        """Return the error of this append."""
        if self._count == 0:
            return ErrorCode.NONE
        self._count -= 1
        return self._error

    def takes_unacknowledged(self, batch: LogBatch) -> bool:  # noqa: ARG002 - any batch is taken
        """Return True: only acknowledged appends fail."""
        return True


_ANSWERED_AT_EDGE: Final = (
    TxnOffsetCommitRequest,
    ShareGroupHeartbeatRequest,
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
)
"""Requests that KafkaApis refuses otherwise than the coordinator would."""


class FailingVerification:
    """A transaction verifier with a preset result."""

    def __init__(self) -> None:
        self.error = ErrorCode.NONE

    def verdict(
        self,
        request: TxnOffsetCommitRequest,  # noqa: ARG002 - any request may fail
        api_version: int,  # noqa: ARG002 - as above
    ) -> ErrorCode:
        """Return the preset result."""
        return self.error


class Harness:
    """A broker that leads every offsets partition, its log, and its clock.

    Attributes:
        topics: Existing topics; until the first is set, every topic exists.
        hears_own_last: Whether a request's own answer comes after others that it caused, as in
            KafkaApis, which sends it when the coordinator has returned.
        checks_at_edge: Whether the requests of `_ANSWERED_AT_EDGE` pass the checks of
            KafkaApis. False passes them straight to the coordinator, as Kafka's oracle does.
        persister: The share coordinator that it asks.
        told: Called with the events of every step; None for no listener.

    Args:
        seed: Seed of the member ids.
        elect: Whether it leads all partitions from the start, at leader epoch 1.
        started: Whether its coordinator accepts requests before `startup`.
    """

    past_edge: ClassVar[tuple[type, ...]] = _ANSWERED_AT_EDGE
    coordinator_type: ClassVar[type[GroupCoordinator]] = GroupCoordinator

    def __init__(
        self,
        config: CoordinatorConfig | None = None,
        profile: Profile = DEFAULT_PROFILE,
        *,
        seed: int = 0,
        start_ms: int = START_MS,
        elect: bool = True,
        started: bool = True,
    ) -> None:
        self.config = CoordinatorConfig() if config is None else config
        self.profile = profile
        self.now_ms = start_ms
        self.ids = SeededIds(seed)
        self.topics = Topics(is_open=True)
        self.checks_at_edge = True
        self.hears_own_last = False
        self.told: Callable[[tuple[TraceEvent, ...]], object] | None = None
        self.persister = StandInPersister()
        self._appends = FailingAppends()
        self._verifier = FailingVerification()
        self.coordinator = self.coordinator_type(
            self.config,
            profile,
            ids=self.ids,
            partition_writer=self._appends,
            verifier=self._verifier,
            started=started,
        )
        self.coordinator.use_persister(self.persister)
        self._apis = GroupApis(
            self.coordinator,
            profile,
            topics=self.topics,
            old_offsets=ZooKeeperOffsets(self.config.offset_metadata_max_bytes),
            offers=offers_of(profile),
        )
        self._log: dict[int, list[LogBatch]] = {}
        self.next_token = 1
        self._metadata_version = 1
        self._replies: list[TimedReply] = []
        self._batches: list[LogBatch] = []
        self._events: list[TraceEvent] = []
        self.coordinator.topics_changed((), (), self._metadata_version)
        if elect:
            self.elect()

    # -- verbs -----------------------------------------------------------------------------

    def call(
        self,
        request: GroupRequest,
        *,
        api_version: int,
        client_id: str = "client",
        client_host: str = "/127.0.0.1",
        principal: str = "User:ANONYMOUS",
    ) -> Step:
        """Send a request; its answer may come with this step or with a later one."""
        context = RequestContext(
            token=self.next_token,
            api_version=api_version,
            client_id=client_id,
            client_host=client_host,
            principal=principal,
        )
        self.next_token += 1
        if isinstance(request, self.past_edge) and not self.checks_at_edge:
            result = self.coordinator.handle(request, context, self.now_ms)
        else:
            result = self._apis.handle(request, context, self.now_ms)
        self._take(self._hear_own(result, context.token))
        self._settle()
        return self._step(context.token)

    def advance(self, ms: int) -> Step:
        """Let `ms` milliseconds pass, firing each timer at its own instant."""
        target_ms = self.now_ms + ms
        while True:
            wake_up_ms = self.coordinator.wake_up_ms()
            if wake_up_ms is None or wake_up_ms > target_ms:
                break
            self.now_ms = max(wake_up_ms, self.now_ms)
            self._take(self.coordinator.expire(self.now_ms))
        self.now_ms = target_ms
        return self._step()

    def set_topic(self, name: str, partition_count: int, topic_id: bytes = bytes(16)) -> None:
        """Create a topic; from the first one on, commits to unknown topics are refused."""
        self.change_topics({name: Topic(topic_id, partition_count)})

    def remove_topics(self, names: Sequence[str]) -> Step:
        """Delete topics, and with them their offsets."""
        return self.change_topics({}, names)

    def change_topics(
        self,
        changed: Mapping[str, Topic],
        removed: Sequence[str] = (),
        version: int | None = None,
    ) -> Step:
        """Create, grow and delete topics in one change of the cluster's metadata.

        Args:
            changed: Topics that are new or other than before, by name.
            removed: Names of topics that are deleted.
            version: Of the metadata from now on; None for the next one.
        """
        for name, topic in changed.items():
            self.topics.put(name, topic)
        known = {name: self.topics.remove(name) for name in removed}
        self._metadata_version = self._metadata_version + 1 if version is None else version
        self.coordinator.topics_changed(
            [
                KnownTopic(name, topic.topic_id, topic.partition_count, topic.racks)
                for name, topic in changed.items()
            ],
            removed,
            self._metadata_version,
        )
        gone = {
            name: DeletedTopic(topic_id=topic.topic_id, partition_count=topic.partition_count)
            for name, topic in known.items()
            if topic is not None
        }
        if gone:
            self._take(self.coordinator.topics_deleted(gone, self.now_ms))
            self._settle()
        return self._step()

    def complete_transaction(self, request: CompleteTransaction) -> Step:
        """End a producer's transaction on one offsets partition."""
        context = RequestContext(token=self.next_token, api_version=0)
        self.next_token += 1
        result = self.coordinator.complete_transaction(request, context, self.now_ms)
        self._take(self._hear_own(result, context.token))
        self._settle()
        return self._step(context.token)

    def startup(self) -> Step:
        """Start a coordinator that was created unstarted."""
        self.coordinator.startup(self.now_ms)
        return self._step()

    def shutdown(self) -> Step:
        """Stop the coordinator for good."""
        self._take(self.coordinator.shutdown(self.now_ms))
        return self._step()

    def elect(self, partition: int | None = None, leader_epoch: int = 1) -> Step:
        """Become leader of one offsets partition, or of all, and load it from the log."""
        for index in self._indexes(partition):
            self._take(self.coordinator.begin_load(index, leader_epoch, self.now_ms))
            error = self._replayed(index)
            self._take(self.coordinator.finish_load(index, error, self.now_ms))
            self._settle()
        return self._step()

    def resign(self, partition: int | None = None, leader_epoch: int | None = None) -> Step:
        """Stop leading one offsets partition, or all."""
        for index in self._indexes(partition):
            self._take(self.coordinator.unload(index, leader_epoch, self.now_ms))
            self._settle()
        return self._step()

    def append(
        self, partition: int, records: tuple[LogRecord, ...], timestamp_ms: int | None = None
    ) -> Step:
        """Put records into the log without the coordinator's knowledge, for a later `elect`.

        Args:
            partition: Offsets partition.
            records: Records of one batch.
            timestamp_ms: Their time, by default now.
        """
        log = self._log.setdefault(partition, [])
        batch = LogBatch(
            partition=partition,
            base_offset=log[-1].next_offset if log else 0,
            timestamp_ms=self.now_ms if timestamp_ms is None else timestamp_ms,
            records=records,
        )
        log.append(batch)
        self._batches.append(batch)
        return self._step()

    def append_batches(self, batches: Iterable[LogBatch]) -> None:
        """Put stored batches into the logs of their partitions, for a later `elect`.

        Args:
            batches: Batches with their own offsets and times, such as those of a segment.
        """
        for batch in batches:
            self._log.setdefault(batch.partition, []).append(batch)

    def replace_log(self, partition: int, batches: Sequence[LogBatch]) -> None:
        """Replace a log by these batches, for a later `elect`: for example a compacted log."""
        self._log[partition] = list(batches)

    def hold(self, *, high_watermark: bool) -> None:
        """Set whether appends wait for `commit` from now on."""
        self.coordinator.hold_high_watermark(hold=high_watermark)

    def commit(self, partition: int | None = None, offset: int | None = None) -> Step:
        """Advance the high watermark of one offsets partition, or all, to `offset` or the end."""
        for index in self._indexes(partition):
            end = self.coordinator.end_offset(index) if offset is None else offset
            self._take(self.coordinator.advance_high_watermark(index, end, self.now_ms))
            self._settle()
        return self._step()

    def fail_appends(self, error: ErrorCode, count: int = 1) -> None:
        """Refuse the next `count` appends with that error."""
        self._appends.fail(error, count)

    def answer_persister(self, error: ErrorCode, count: int = 1, *, thrown: bool = False) -> Step:
        """Let the share coordinator answer the oldest calls that it holds.

        Args:
            error: Error of every partition, or NONE.
            count: How many calls, if so many are held.
            thrown: Whether the calls fail as a whole instead.
        """
        for _ in range(count):
            call = self.persister.release()
            if call is None:
                break
            answer = outcome(call, error, thrown=thrown)
            self._take(self.coordinator.persister_answered(call.call_id, answer, self.now_ms))
        self._settle()
        return self._step()

    def fail_verification(self, error: ErrorCode) -> None:
        """Set the result of verifying transactions from now on; NONE lets all pass."""
        self._verifier.error = error

    def authorize(self, authorizer: Authorizer | None) -> None:
        """Use this authorizer from now on; None allows everything."""
        self._apis.use_authorizer(authorizer)

    # -- inspection ------------------------------------------------------------------------

    def partition_of(self, group_id: str) -> int:
        """Return the offsets partition of a group."""
        return partition_for(group_id, self.config.offsets_topic_num_partitions)

    def timers(self) -> tuple[Timer, ...]:
        """Return the armed timers in firing order."""
        return self.coordinator.timers()

    def log(self, partition: int) -> tuple[LogBatch, ...]:
        """Return the batches of an offsets partition, in log order."""
        return tuple(self._log.get(partition, ()))

    # -- inside ----------------------------------------------------------------------------

    def _indexes(self, partition: int | None) -> Iterator[int]:
        if partition is None:
            return iter(range(self.config.offsets_topic_num_partitions))
        return iter((partition,))

    def _hear_own(self, result: CoordinatorResult, token: int) -> CoordinatorResult:
        """Move a request's own answer after the other answers, if the harness is set to."""
        if not self.hears_own_last:
            return result
        ordered = sorted(result.replies, key=lambda reply: reply.token == token)
        return replace(result, replies=tuple(ordered))

    def _settle(self) -> None:
        """Fire timers that are due: a delay of 0 ms ends within the verb that armed it."""
        while (due_ms := self.coordinator.wake_up_ms()) is not None and due_ms <= self.now_ms:
            self._take(self.coordinator.expire(self.now_ms))

    def _take(self, result: CoordinatorResult) -> None:
        result = self._apis.pass_on(result)
        self._replies += [
            TimedReply(self.now_ms, reply.token, reply.response, reply.internal_topics)
            for reply in result.replies
        ]
        for batch in result.batches:
            self._log.setdefault(batch.partition, []).append(batch)
        self._batches += result.batches
        self._events += result.events

    def _replayed(self, index: int) -> ErrorCode:
        """Replay a log; a broker gives a partition up whose records contradict each other."""
        try:
            for batch in self._log.get(index, ()):
                self.coordinator.replay(index, batch)
        except OperationAborted:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.NONE

    def _step(self, token: int | None = None) -> Step:
        step = Step(
            now_ms=self.now_ms,
            token=token,
            replies=tuple(self._replies),
            batches=tuple(self._batches),
            events=tuple(self._events),
        )
        self._replies, self._batches, self._events = [], [], []
        if self.told is not None:
            self.told(step.events)
        return step
