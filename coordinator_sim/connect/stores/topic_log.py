"""A compacted topic as a log that one process reads to its end, follows and writes to.

The reader is the log's own thread: it polls, hands every record to its owner, and serves the calls
for "read to the end" that were queued before its pass began.

Source: kafka trunk, connect/runtime/.../util/KafkaBasedLog.java; the topic's creation is
storage/KafkaTopicBasedBackingStore.java and util/TopicAdmin.java.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from msgspec import Struct

from coordinator_sim.clients.exceptions import TIMEOUT
from coordinator_sim.connect import effects, exceptions
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Thread, Wait

CREATE_TOPIC_TIMEOUT_MS: Final = 30_000
"""KafkaBasedLog.CREATE_TOPIC_TIMEOUT_NS: time limit of waiting for the topic's partitions."""
FIRST_SLEEP_MS: Final = 100
"""Pause between the first two looks at the partitions; doubles from one to the next."""
MAX_SLEEP_MS: Final = 1_000
"""KafkaBasedLog.MAX_SLEEP_MS."""
ADMIN_RETRY_DURATION_MS: Final = 900_000
"""KafkaBasedLog.ADMIN_CLIENT_RETRY_DURATION."""
ADMIN_RETRY_BACKOFF_MS: Final = 10_000
"""KafkaBasedLog.ADMIN_CLIENT_RETRY_BACKOFF_MS."""
CLEANUP_POLICY: Final = "cleanup.policy"
COMPACT: Final = "compact"

_FALLBACK_ERRORS: Final = (
    exceptions.UNSUPPORTED_VERSION,
    "ClusterAuthorizationException",
    "TopicAuthorizationException",
)
"""CreateTopics errors after which the topic is taken to exist, or to be created by use."""

_RETRIED_CREATION: Final = ("InvalidReplicationFactorException", TIMEOUT)
"""TopicAdmin.CAUSES_TO_RETRY_TOPIC_CREATION."""

Consumed = Callable[[effects.TopicRecord | effects.RecordRun], None]
"""Consumer of each record as it is read."""
Spawn = Callable[[Blocking[None]], Thread]
"""Begins another thread of the worker, which runs it from now on."""


class InternalTopic(Struct, frozen=True, kw_only=True):
    """One of the worker's internal topics, as created and read.

    Args:
        name: Name of the topic.
        setting: The worker setting that names it.
        purpose: Contents of the topic, for messages.
        partitions: Number of partitions it is created with.
        replication_factor: Replication factor it is created with; -1 is the broker's default.
        configs: Settings of the topic, besides `cleanup.policy=compact`.
        read_committed: Whether records of open and aborted transactions stay hidden.
        create_timeout_ms: `default.api.timeout.ms`: time limit for its creation.
        retry_backoff_ms: `retry.backoff.ms`: pause between two tries.
    """

    name: str
    setting: str
    purpose: str
    partitions: int = 1
    replication_factor: int = 3
    configs: dict[str, str] = {}
    read_committed: bool = False
    create_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100


class TopicLog:
    """The port of KafkaBasedLog, with a consumer and a producer of its own.

    Args:
        outbox: The worker's outbox.
        spawn: Begins the reader's thread.
        topic: The topic to read and to write.
        consumed: Takes each record, on the thread that polls.
    """

    def __init__(
        self, outbox: Outbox, spawn: Spawn, *, topic: InternalTopic, consumed: Consumed
    ) -> None:
        self._outbox = outbox
        self._spawn = spawn
        self._topic = topic
        self._consumed = consumed
        self._positions: dict[int, int] = {}
        self._fetched: deque[effects.Fetched] = deque()
        self._arrived: Pending[object] = Pending()
        self._woken_up = False
        self._callbacks: deque[Pending[object]] = deque()
        self._produced: deque[Pending[object]] = deque()
        self._stop_requested = False
        self._by_consumer = False
        self._thread: Thread | None = None
        self._finished: Pending[object] = Pending()
        self.partition_count = 0
        """Number of the topic's partitions; known once the log has started."""

    @property
    def topic(self) -> InternalTopic:
        """Topic that is read and written."""
        return self._topic

    # -- start and stop --------------------------------------------------------------------

    def start(self) -> Blocking[None]:
        """Create the topic if needed, read it to its end, and keep reading in the background.

        Raises:
            ConnectException: the topic cannot be created, or its partitions or end offsets are
            not available in time.
            ConfigException: the topic exists and is not compacted alone.
            ClientException: UnsupportedVersionException, when the broker cannot tell end offsets
                to the admin client and only committed records are to be read.
        """
        yield from self._initialize_topic()
        yield from self._look_up_partitions()
        self._outbox.tell(effects.StartReading(self._topic.name, self._topic.read_committed))
        yield from self._read_to_log_end(should_retry=True)
        self._outbox.tell(effects.ReadToEnd(self._topic.name))
        self._thread = self._spawn(self._work())

    def stop(self) -> Blocking[None]:
        """End the reader's thread, then close its clients. Queued calls stay unanswered."""
        self._stop_requested = True
        self._wake_up()
        if self._thread is not None:
            yield Wait(self._finished)
        yield from self.flush()
        self._outbox.tell(effects.StopReading(self._topic.name))

    def _initialize_topic(self) -> Blocking[None]:
        """Create or check the topic; see KafkaTopicBasedBackingStore.topicInitializer."""
        created = yield from self._create_with_retry()
        if not created:
            yield from self._verify_cleanup_policy()

    def _create_with_retry(self) -> Blocking[bool]:
        """Create the topic, as TopicAdmin.createTopicsWithRetry; return whether it is new."""
        deadline_ms = self._outbox.now_ms + self._topic.create_timeout_ms
        while True:
            pending = self._outbox.ask(self._create_topic)
            yield Wait(pending)
            error = pending.error
            if error is None:
                return bool(pending.value)
            if error in _FALLBACK_ERRORS:
                return False
            if error not in _RETRIED_CREATION or self._outbox.now_ms >= deadline_ms:
                raise exceptions.ConnectException(_creation_failure(self._topic.name, error), error)
            yield Wait(until_ms=self._outbox.now_ms + self._topic.retry_backoff_ms)
            if self._outbox.now_ms >= deadline_ms:
                raise exceptions.TimeoutException("Timeout expired while trying to create topic(s)")

    def _create_topic(self, token: int) -> effects.CreateTopic:
        topic = self._topic
        return effects.CreateTopic(
            token=token,
            topic=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            configs={**topic.configs, CLEANUP_POLICY: COMPACT},
        )

    def _verify_cleanup_policy(self) -> Blocking[None]:
        """Check that the topic is compacted only; passes when the broker cannot be asked.

        Source: TopicAdmin.verifyTopicCleanupPolicyOnlyCompact.
        """
        name = self._topic.name
        pending = self._outbox.ask(
            partial(effects.DescribeTopicConfig, topic=name, name=CLEANUP_POLICY)
        )
        yield Wait(pending)
        error = pending.error
        if error is not None:
            if error in (*_FALLBACK_ERRORS, "UnknownTopicOrPartitionException"):
                return
            raise exceptions.ConnectException(_description_failure(name, error), error)
        policies = cast("str", pending.value or "")
        if policies and set(policies.replace(" ", "").split(",")) != {COMPACT}:
            raise exceptions.ConfigException(
                f"Topic '{name}' supplied via the '{self._topic.setting}' property is required to "
                f"have '{CLEANUP_POLICY}={COMPACT}' to guarantee consistency and durability of "
                f"{self._topic.purpose}, but found the topic currently has "
                f"'{CLEANUP_POLICY}={policies}'."
            )

    def _look_up_partitions(self) -> Blocking[None]:
        """Wait until the topic has partitions, then read them from the beginning."""
        started_ms = self._outbox.now_ms
        sleep_ms = FIRST_SLEEP_MS
        count = yield from self._partitions_for()
        while not count and self._outbox.now_ms - started_ms < CREATE_TOPIC_TIMEOUT_MS:
            yield Wait(until_ms=self._outbox.now_ms + sleep_ms)
            sleep_ms = min(2 * sleep_ms, MAX_SLEEP_MS)
            count = yield from self._partitions_for()
        if not count:
            raise exceptions.ConnectException(
                f"Could not look up partition metadata for topic '{self._topic.name}' in the"
                " allotted period. This could indicate a connectivity issue, unavailable topic"
                " partitions, or if this is your first use of the topic it may have taken too long"
                " to create."
            )
        self.partition_count = count
        self._positions = dict.fromkeys(range(count), 0)

    def _partitions_for(self) -> Blocking[int]:
        pending = self._outbox.ask(partial(effects.DescribeTopic, topic=self._topic.name))
        yield Wait(pending)
        if pending.error is not None:
            raise exceptions.thrown(pending.error)
        return cast("int", pending.value or 0)

    # -- reading ---------------------------------------------------------------------------

    def fetched(self, fetched: effects.Fetched) -> None:
        """Pass records that arrived at the log's consumer to the polling thread."""
        self._fetched.append(fetched)
        self._arrived.complete()

    def read_to_end(self) -> Blocking[Pending[object]]:
        """Queue a call for all records now in the topic; blocks until sent records are written.

        Returns:
            Done once a pass of the reader that began later has reached the end, or with an error.
        """
        yield from self.flush()
        callback: Pending[object] = Pending()
        self._callbacks.append(callback)
        self._wake_up()
        return callback

    def await_end(self, timeout_ms: int) -> Blocking[None]:
        """Read to the end, waiting at most `timeout_ms` after the call was queued.

        Raises:
            TimeoutException: reading takes longer; the call stays queued.
            ExecutionException: the reader failed.
        """
        callback = yield from self.read_to_end()
        yield from await_result(callback, self._outbox, timeout_ms)

    def _wake_up(self) -> None:
        self._woken_up = True
        self._arrived.complete()

    def _poll(self) -> Blocking[None]:
        """Wait without limit for records and hand them over, unless woken up."""
        while True:
            if self._woken_up:
                self._woken_up = False
                raise exceptions.WakeupException
            if self._fetched:
                break
            self._arrived = Pending()
            yield Wait(self._arrived)
        fetched = self._fetched.popleft()
        self._positions.update(fetched.positions)
        try:
            for record in fetched.records:
                self._consumed(record)
        except exceptions.ConnectException:
            # QUIRK: the poll logs an exception of the owner, and the rest of the polled records is
            # never handed over.
            return

    def _read_to_log_end(self, *, should_retry: bool) -> Blocking[None]:
        end_offsets = yield from self._read_end_offsets(should_retry=should_retry)
        while end_offsets:
            for partition, end_offset in tuple(end_offsets.items()):
                if self._positions[partition] < end_offset:
                    yield from self._poll()
                    break
                del end_offsets[partition]

    def _read_end_offsets(self, *, should_retry: bool) -> Blocking[dict[int, int]]:
        if not self._by_consumer:
            try:
                if should_retry:
                    return (yield from self._retry_end_offsets())
                return (yield from self._admin_end_offsets())
            except exceptions.JavaException as exception:
                if exception.name != exceptions.UNSUPPORTED_VERSION or self._topic.read_committed:
                    raise
                self._by_consumer = True
        return (yield from self._end_offsets())

    def _retry_end_offsets(self) -> Blocking[dict[int, int]]:
        """Read end offsets with retries, as RetryUtil.retryUntilTimeout."""
        end_ms = self._outbox.now_ms + ADMIN_RETRY_DURATION_MS
        attempt = 0
        while True:
            attempt += 1
            try:
                return (yield from self._admin_end_offsets())
            except exceptions.JavaException as exception:
                if not exception.is_retriable:
                    raise
                if end_ms - self._outbox.now_ms < ADMIN_RETRY_BACKOFF_MS:
                    raise exceptions.ConnectException(
                        f"Fail to list offsets for topic partitions after {attempt} attempts.  "
                        f"Reason: {exception.message}",
                        exception.name,
                    ) from exception
            yield Wait(until_ms=self._outbox.now_ms + ADMIN_RETRY_BACKOFF_MS)

    def _admin_end_offsets(self) -> Blocking[dict[int, int]]:
        """Wrap errors that are neither retriable nor unsupported, as TopicAdmin.endOffsets."""
        try:
            return (yield from self._end_offsets())
        except exceptions.JavaException as exception:
            if exception.is_retriable or exception.name == exceptions.UNSUPPORTED_VERSION:
                raise
            raise exceptions.ConnectException(
                f"Error while getting end offsets for topic '{self._topic.name}'", exception.name
            ) from exception

    def _end_offsets(self) -> Blocking[dict[int, int]]:
        pending = self._outbox.ask(
            partial(effects.ListEndOffsets, topic=self._topic.name, by_consumer=self._by_consumer)
        )
        yield Wait(pending)
        if pending.error is not None:
            raise exceptions.thrown(pending.error)
        return dict(cast("dict[int, int]", pending.value))

    def _work(self) -> Blocking[None]:
        """The reader's thread: one pass serves exactly the calls queued before it began."""
        while not self._stop_requested:
            call_count = len(self._callbacks)
            try:
                if call_count and not (yield from self._read_to_end_for_calls()):
                    continue
                self._answer_calls(call_count, None)
                call_count = 0
                yield from self._poll()
            except exceptions.WakeupException:
                continue
            except exceptions.JavaException as exception:
                self._answer_calls(call_count, exception.name)
        self._finished.complete()

    def _read_to_end_for_calls(self) -> Blocking[bool]:
        """Run one pass; return False when it has to begin again."""
        try:
            yield from self._read_to_log_end(should_retry=False)
        except exceptions.JavaException as exception:
            if exception.is_retriable or exception.name == TIMEOUT:
                return False
            raise
        return True

    def _answer_calls(self, count: int, error: str | None) -> None:
        for _ in range(count):
            self._callbacks.popleft().complete(error=error)

    # -- writing ---------------------------------------------------------------------------

    def send(self, key: bytes | None, value: bytes | None) -> Pending[object]:
        """Write a record; done with its offset, or with the error of the producer."""
        while self._produced and self._produced[0].done:
            self._produced.popleft()
        name = self._topic.name
        pending = self._outbox.ask(
            lambda token: effects.Produce(token=token, topic=name, key=key, value=value)
        )
        self._produced.append(pending)
        return pending

    def flush(self) -> Blocking[None]:
        """Wait until every record sent so far is written or has failed."""
        sent = tuple(self._produced)
        for pending in sent:
            if not pending.done:
                yield Wait(pending)


def await_result(pending: Pending[object], outbox: Outbox, timeout_ms: int) -> Blocking[None]:
    """Wait for a result, as Java's `Future.get` with a timeout.

    Raises:
        TimeoutException: the result is not there after `timeout_ms`.
        ExecutionException: the operation failed; its cause names the exception.
    """
    if not pending.done:
        yield Wait(pending, until_ms=outbox.now_ms + max(timeout_ms, 0))
    if not pending.done:
        raise exceptions.TimeoutException
    if pending.error is not None:
        raise exceptions.ExecutionException(pending.error, pending.error)


def _creation_failure(topic: str, error: str) -> str:
    if error == TIMEOUT:
        return (
            f"Timed out while checking for or creating topic(s) '{topic}'. This could indicate a"
            " connectivity issue, unavailable topic partitions, or if this is your first use of"
            " the topic it may have taken too long to create."
        )
    return f"Error while attempting to create/find topic(s) '{topic}'"


def _description_failure(topic: str, error: str) -> str:
    return f"Error while attempting to describe topic config for topic '{topic}': {error}"
