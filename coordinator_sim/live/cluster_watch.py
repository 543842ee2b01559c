"""Reads a running cluster for `watching`: its offsets log, states of groups, ends of partitions.

The consumer is assigned by hand: it joins no group and commits nothing. librdkafka wants a group
id, looks its coordinator up, and sends nothing else about it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec
from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.live.trogdor.client_settings import native_of_admin, native_of_consumer
from coordinator_sim.live.watching import Ended, SeenRecord, Watching
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trogdor.workloads.clients import ClientFailed

GROUP_ID: Final = "coordinator-sim-watch"
"""A group that never has a member."""
_ANSWER_S: Final = 10.0
_POLL_S: Final = 0.2
_AT_ONCE: Final = 5_000
"""Records that are taken together, and partitions of one request for ends."""
_CHECKPOINT_S: Final = 1.0
_TOPIC_WAIT_S: Final = 2.0
_SETTLED_S: Final = 0.5
_JUMP_S: Final = 2.0
_NAMES_S: Final = 5.0
"""Names of topics are asked for at most so often."""
_OUTAGE_S: Final = 2.0
"""A shorter outage is not reported."""
_DENIED: Final = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}
)
_OURS: Final = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    # A broker in use has a few new records at any time, and would answer thousands of fetches.
    "fetch.min.bytes": 1_000_000,
    "fetch.wait.max.ms": 500,
}
"""Settings of the consumer that the user's do not change."""


class WatchOptions(Struct, frozen=True, kw_only=True):
    """How to watch.

    Args:
        bootstrap: Brokers to begin with, `HOST:PORT`, several with commas.
        settings: A client's settings, by the names of Kafka's Java clients.
        from_end: Whether to begin at the log's end, without what it tells of the time before.
        requests_per_s: Requests a second for states of groups and ends of partitions, at most.
    """

    bootstrap: str
    settings: Mapping[str, str] = {}
    from_end: bool = False
    requests_per_s: float = 2.0


class Audience(Struct, frozen=True):
    """The functions that a watch calls with what happens.

    Args:
        line: A line for the user.
        ended: A rebalance that ended.
        event: An event for the trace.
        checkpoint: All events so far are to be kept.
    """

    line: Callable[[str], None]
    ended: Callable[[Ended], None]
    event: Callable[[TraceEvent], None]
    checkpoint: Callable[[], None]


class ClusterWatch:
    """One watch of a cluster.

    Args:
        options: How to watch.
        watching: What the records tell.
        audience: What is called with it.

    Attributes:
        lock: Held while `watching` changes.
        requests: Requests that were sent for states and ends.

    Raises:
        ConfigError: A setting is unknown or wrong.
    """

    _consumer: Consumer

    def __init__(self, options: WatchOptions, watching: Watching, audience: Audience) -> None:
        self.lock = Lock()
        self.requests = 0
        self._options = options
        self._watching = watching
        self._audience = audience
        self._why = ""
        self._down_since_s: float | None = None
        self._answered_s = 0.0
        self._is_outage_reported = False
        self._positions: dict[int, int] = {}
        self._unchecked: set[int] = set()
        self._behind: set[int] = set()
        self._lost: dict[int, None] = {}
        """Partitions whose next offset cannot be read, until it is known where to go on."""
        self._next_names_s = 0.0
        self._brokers = 1
        self._cluster_id = ""
        self._pending: dict[Any, Future[Any]] = {}
        self._turn = 0
        self._next_ask_s = 0.0
        self._untold_denial = True
        self._settings = {**options.settings, "bootstrap.servers": options.bootstrap}
        with _as_config_error():
            native = native_of_admin(self._settings).settings
            callback: dict[str, Any] = {"error_cb": self._note_why}
            self._admin = AdminClient({"client.id": GROUP_ID, **native, **callback})

    def connect(self, is_over: Callable[[], bool]) -> str:
        """Find the offsets topic, wait for it, and begin to read; returns the cluster's id.

        Raises:
            ConfigError: No broker answers, or the topic may not be read.
        """
        begin = self._found(is_over)
        with _as_config_error():
            # Only now: the lookup of its group's coordinator would create the topic.
            native = native_of_consumer(self._settings, GROUP_ID).settings
            self._consumer = Consumer(
                {"client.id": GROUP_ID, **native, **_OURS, "error_cb": self._note_error}
            )
        self._positions, self._behind = dict(begin), set(begin)
        self._watching.find_topics = self._find_topics
        self._consumer.assign([TopicPartition(OFFSETS_TOPIC, *each) for each in begin.items()])
        return self._cluster_id

    def _found(self, is_over: Callable[[], bool]) -> dict[int, int]:
        """Where to begin in each partition, once there is a topic with leaders."""
        has_told = False
        while not is_over():
            topics = self._metadata()
            if topics is not None:
                partitions = sorted(topics[OFFSETS_TOPIC].partitions)
                ends = self._offsets(partitions, OffsetSpec.latest())
                begin = self._offsets(partitions, OffsetSpec.earliest())
                if ends is not None and begin is not None:
                    self._watching.ends = ends
                    self._name_topics(list(topics))
                    return ends if self._options.from_end else begin
            if not has_told:
                self._audience.line(f"{OFFSETS_TOPIC} is not there yet: waiting for a first group")
                has_told = True
            time.sleep(_TOPIC_WAIT_S)
        return {}

    def run(self, is_over: Callable[[], bool]) -> None:
        """Follow the cluster until the watch is over.

        Raises:
            ConfigError: The topic may not be read any more.
            OSError: The trace cannot be written.
        """
        begun_s = counted_s = time.monotonic()
        try:
            while not is_over():
                was_behind = bool(self._behind)
                messages = self._consumer.consume(_AT_ONCE, _POLL_S)
                self._take(messages, is_drained=len(messages) < _AT_ONCE)
                now_s = time.monotonic()
                self._check_connection(now_s)
                if was_behind and not self._behind:
                    self._tell_beginning(now_s - begun_s)
                if not self._behind:
                    self._ask(now_s)
                if now_s - counted_s >= _CHECKPOINT_S:
                    with self.lock:
                        self._watching.note_time(now_s - counted_s)
                    counted_s = now_s
                    self._find_lost()
                    self._audience.checkpoint()
            self._take([], is_drained=True)
        finally:
            self._consumer.close()

    # -- records -----------------------------------------------------------------------------

    def _take(self, messages: list[Message], *, is_drained: bool) -> None:
        records = []
        for message in messages:
            partition, offset = message.partition() or 0, message.offset()
            error = message.error()
            if error is None and offset is not None:
                self._check_jump(partition, offset)
                self._positions[partition] = offset + 1
                time_ms = message.timestamp()[1]
                records.append(
                    SeenRecord(partition, offset, time_ms, _bytes(message.key()), message.value())
                )
            elif error is not None:
                self._note_message_error(partition, offset, error)
        with self.lock:
            events, ended = self._watching.take(records, is_drained=is_drained)
        if records:
            self._note_answer()
        for event in events:
            self._audience.event(event)
        for each in ended:
            self._audience.ended(each)

    def _note_message_error(self, partition: int, offset: int | None, error: KafkaError) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:  # noqa: SLF001 - confluent-kafka's own name
            self._positions[partition] = offset or 0
            self._behind.discard(partition)
        elif code in {KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET}:  # noqa: SLF001
            self._lost[partition] = None
        elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise _denied(error)

    def _find_lost(self) -> None:
        """Go on in lost partitions; the rest waits where one has no leader now."""
        for partition in list(self._lost):
            del self._lost[partition]
            try:
                self._jump(partition)
            except KafkaException:
                self._lost[partition] = None
                return

    def _jump(self, partition: int) -> None:
        """Go on where a partition is, after the broker lost or deleted what was to be read."""
        asked = TopicPartition(OFFSETS_TOPIC, partition)
        low, high = self._consumer.get_watermark_offsets(asked, _JUMP_S)
        was = self._positions[partition]
        to = min(max(was, low), high)
        self._consumer.seek(TopicPartition(OFFSETS_TOPIC, partition, to))
        self._positions[partition] = to
        if to != was:
            text = f"offsets {was} to {to} cannot be read: the log has {low}..{high}"
            self._note_gap(partition, text)

    def _check_jump(self, partition: int, offset: int) -> None:
        if partition in self._unchecked:
            self._unchecked.discard(partition)
            was = self._positions.get(partition, offset)
            if offset > was:
                self._note_gap(
                    partition,
                    f"{offset - was} offsets from {was} on have no record any more: compaction "
                    "removed them, or they end transactions",
                )

    def _note_gap(self, partition: int, text: str) -> None:
        self._audience.line(f"gap in {OFFSETS_TOPIC}-{partition}: {text}")
        with self.lock:
            events = self._watching.note_gap(partition, text, time.time_ns() // 1_000)
        for event in events:
            self._audience.event(event)

    def _tell_beginning(self, took_s: float) -> None:
        watching = self._watching
        what = "from the log's end" if self._options.from_end else f"{watching.records:,} records"
        self._audience.line(
            f"following {_counted(len(watching.groups), 'group')} in "
            f"{_counted(len(self._positions), 'partition')} of {OFFSETS_TOPIC} "
            f"({what}, {took_s:.1f} s)"
        )
        if self._options.from_end:
            return
        for name in watching.unseen_names():
            self._audience.line(f"--group {name}: no such group in the log yet; it is waited for")

    # -- connections -------------------------------------------------------------------------

    def _note_why(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - confluent-kafka's own name
            self._why = error.str()

    def _note_error(self, error: KafkaError) -> None:
        self._note_why(error)
        is_down = error.code() == KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - confluent-kafka's own name
        if is_down and self._down_since_s is None:
            self._down_since_s = time.monotonic()

    def _note_answer(self) -> None:
        self._answered_s = time.monotonic()

    def _check_connection(self, now_s: float) -> None:
        """Report an outage, and its end; records that had come before it are no answer."""
        down_s = self._down_since_s
        if down_s is None:
            return
        if self._answered_s > down_s + _SETTLED_S:
            if self._is_outage_reported:
                for_s = self._answered_s - down_s
                self._audience.line(f"a broker answers again after {for_s:.0f} s: reading goes on")
            self._unchecked = self._positions.keys() - self._behind
            self._down_since_s, self._is_outage_reported = None, False
        elif now_s - down_s >= _OUTAGE_S and not self._is_outage_reported:
            self._is_outage_reported = True
            self._audience.line(f"no broker answers ({self._why}): waiting for one")

    def _metadata(self) -> dict[str, Any] | None:
        """The topics by their names; None where the offsets topic is not among them.

        Raises:
            ConfigError: No broker answers, or the topic may not be read.
        """
        try:
            # Asking for the topic by its name would create it.
            found = self._admin.list_topics(timeout=_ANSWER_S)
        except KafkaException as error:
            self._admin.poll(0)
            raise ConfigError(
                f"--bootstrap {self._options.bootstrap}: {self._why or error.args[0].str()}; name "
                "a broker that is reachable, and TLS and SASL with --command-config FILE"
            ) from None
        self._brokers = max(1, len(found.brokers))
        self._cluster_id = str(found.cluster_id or "")
        if OFFSETS_TOPIC in found.topics:
            return dict(found.topics)
        asked = self._admin.describe_topics(TopicCollection([OFFSETS_TOPIC]))
        why = asked[OFFSETS_TOPIC].exception()
        if isinstance(why, KafkaException) and why.args[0].code() in _DENIED:
            raise _denied(why.args[0])
        return None

    def _offsets(self, partitions: list[int], spec: OffsetSpec) -> dict[int, int] | None:
        """Offsets of partitions of the offsets topic; None while one has no leader."""
        asked = [TopicPartition(OFFSETS_TOPIC, partition) for partition in partitions]
        found = self._admin.list_offsets(dict.fromkeys(asked, spec), request_timeout=_ANSWER_S)
        try:
            return {tp.partition: each.result().offset for tp, each in found.items()}
        except KafkaException as error:
            if error.args[0].code() in _DENIED:
                raise _denied(error.args[0]) from None
            return None

    def _name_topics(self, names: list[str]) -> None:
        """Learn the ids of topics, which records of epochs name; a broker before 2.8 has none."""
        asked = self._admin.describe_topics(TopicCollection(names), request_timeout=_ANSWER_S)
        for name, each in asked.items():
            try:
                topic_id = each.result().topic_id
            except KafkaException:
                continue
            halves = (topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits())
            data = b"".join(half.to_bytes(8, "big", signed=True) for half in halves)
            self._watching.name_topic(data, name)

    def _find_topics(self) -> None:
        """Learn the names of topics that are new since; who cannot be asked now has none."""
        now_s = time.monotonic()
        if now_s < self._next_names_s:
            return
        self._next_names_s = now_s + _NAMES_S
        with suppress(KafkaException):
            self._name_topics(list(self._admin.list_topics(timeout=_JUMP_S).topics))

    # -- states and ends ---------------------------------------------------------------------

    def _ask(self, now_s: float) -> None:
        """Ask for states of groups or ends of partitions, in turn, as the bound allows."""
        if self._pending:
            if all(each.done() for each in self._pending.values()):
                pending, self._pending = self._pending, {}
                self._take_answers(pending)
            return
        if now_s < self._next_ask_s:
            return
        cost = 1 + self._brokers
        self._next_ask_s = now_s + cost / self._options.requests_per_s
        self.requests += cost
        wanted = self._watching.committed_partitions()
        turns = 1 + -(-len(wanted) // _AT_ONCE)
        part, self._turn = self._turn % turns, (self._turn + 1) % turns
        if part == 0:
            self._pending = {
                None: self._admin.list_consumer_groups(request_timeout=_ANSWER_S),
            }
            return
        some = wanted[(part - 1) * _AT_ONCE : part * _AT_ONCE]
        self._pending = dict(
            self._admin.list_offsets(
                {TopicPartition(*each): OffsetSpec.latest() for each in some},
                request_timeout=_ANSWER_S,
            )
        )

    def _take_answers(self, answers: dict[Any, Future[Any]]) -> None:
        errors = [each.exception() for each in answers.values()]
        good = {key: each.result() for key, each in answers.items() if each.exception() is None}
        for error in errors:
            is_denied = isinstance(error, KafkaException) and error.args[0].code() in _DENIED
            if is_denied and self._untold_denial:
                self._untold_denial = False
                self._audience.line(
                    "the lag of some groups is not known: grant the user Describe on the topics "
                    "they read: kafka-acls --add --allow-principal User:NAME --operation Describe "
                    "--topic TOPIC"
                )
        if good:
            self._note_answer()
        with self.lock:
            if None in good:
                states = {each.group_id: each.state.name for each in good[None].valid}
                slow = self._watching.note_states(states, time.monotonic_ns() // 1000)
                for group_id, for_s in slow:
                    self._audience.line(f"{group_id} has been rebalancing for {for_s} s")
                return
            ends = {(tp.topic, tp.partition): each.offset for tp, each in good.items()}
            lags = self._watching.note_log_ends(ends)
        for group_id, lag, is_behind in lags:
            what = "falls behind" if is_behind else "has caught up"
            self._audience.line(f"{group_id} {what}: lag of {lag:,} records")


@contextmanager
def _as_config_error() -> Iterator[None]:
    """Name a setting that librdkafka refuses."""
    try:
        yield
    except (KafkaException, ClientFailed, TypeError) as error:
        text = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise ConfigError(f"--command-config: {text}; correct it, or leave it out") from None


def _bytes(key: str | bytes | None) -> bytes | None:
    return key.encode() if isinstance(key, str) else key


def _denied(error: KafkaError) -> ConfigError:
    return ConfigError(
        f"{OFFSETS_TOPIC}: {error.str()}; grant the user Read and Describe on this topic: "
        f"kafka-acls --add --allow-principal User:NAME --operation Read --topic {OFFSETS_TOPIC}"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
