"""The line protocol with a share coordinator behind it, as `conformance/oracle` has Kafka's own.

One broker in virtual time, its log in memory. Ops: init (with `coordinator`: `share`), call,
advance, topics, features, startup, shutdown, elect, resign, hold, commit, fail. An answer holds the
virtual time, the replies of every request that completed, the records appended, and as `deleted`
which records of the log were deleted.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.broker.share_coordinator.operations import StateResponse
from coordinator_sim.broker.share_coordinator.ports import ShareCoordinatorConfig
from coordinator_sim.broker.share_coordinator.service import ShareCoordinator
from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.harness.harness import START_MS
from coordinator_sim.harness.kafka_json.topic_ids import topic_id_of
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, profile_named
from coordinator_sim.log.format.share_state_records import decode_share_state
from coordinator_sim.log.format.steps import finished
from coordinator_sim.log.log_values import LogEntry
from coordinator_sim.messages.catalogue import api_named, layout_of, structs_module
from coordinator_sim.messages.codec.json_form import JsonReader, base64_text, to_json
from coordinator_sim.messages.codec.records import record_layout

Json = dict[str, Any]

_SETTINGS: Final = {
    "share.coordinator.snapshot.update.records.per.snapshot": "updates_per_snapshot",
    "share.coordinator.write.timeout.ms": "write_timeout_ms",
    "share.coordinator.append.linger.ms": "append_linger_ms",
    "share.coordinator.state.topic.prune.interval.ms": "prune_interval_ms",
    "share.coordinator.cold.partition.snapshot.interval.ms": "cold_interval_ms",
}


class _Batch(Struct, frozen=True):
    base_offset: int
    entries: tuple[LogEntry, ...]

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.entries)


class MemoryStateLog:
    """The topic in memory; the high watermark follows the end unless it is held.

    Attributes:
        is_held: Whether it is.
        failures: What the next appends fail with.
        failing_deletions: How many of the next deletions fail.
        deleted: Partition and offset of each deletion since somebody looked.
        committed: Hears of partitions whose high watermark moved.
        appended: Hears of appended records.
    """

    def __init__(
        self, committed: Callable[[int, int], None], appended: Callable[[Json], None]
    ) -> None:
        self.is_held = False
        self.failures: list[ErrorCode] = []
        self.failing_deletions = 0
        self.deleted: list[tuple[int, int]] = []
        self.committed = committed
        self.appended = appended
        self._batches: dict[int, list[_Batch]] = {}
        self._starts: dict[int, int] = {}
        self._high_watermarks: dict[int, int] = {}

    def append(
        self,
        partition: int,
        _leader_epoch: int,
        entries: Sequence[LogEntry],
        now_ms: int,
        times_ms: Sequence[int] = (),
    ) -> ErrorCode:
        """Append one batch, or say why not; see `StateLog.append`."""
        if self.failures:
            return self.failures.pop(0)
        base = self.end_offset(partition)
        self._batches.setdefault(partition, []).append(_Batch(base, tuple(entries)))
        for index, entry in enumerate(entries):
            at_ms = times_ms[index] if times_ms else now_ms
            told = {"partition": partition, "offset": base + index, "base": base, "ts": at_ms}
            self.appended(told | _record_json(*entry))
        if not self.is_held:
            self.commit(partition, self.end_offset(partition))
        return ErrorCode.NONE

    def commit(self, partition: int, offset: int) -> None:
        """Commit a partition up to an offset."""
        self._high_watermarks[partition] = offset
        self.committed(partition, offset)

    def records(self, partition: int) -> Iterator[tuple[int, bytes, bytes | None]]:
        """The records; see `StateLog.records`."""
        for batch in self._batches.get(partition, ()):
            if batch.end_offset > self._starts.get(partition, 0):
                for index, (key, value) in enumerate(batch.entries):
                    yield batch.base_offset + index, key, value

    def end_offset(self, partition: int) -> int:
        """The offset after the last record."""
        batches = self._batches.get(partition)
        return batches[-1].end_offset if batches else 0

    def high_watermark(self, partition: int) -> int:
        """The offset up to which a partition is committed."""
        return self._high_watermarks.get(partition, 0)

    def delete_before(self, partition: int, offset: int) -> ErrorCode:
        """Delete the records before an offset, or say why not."""
        if self.failing_deletions:
            self.failing_deletions -= 1
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        self._starts[partition] = offset
        self.deleted.append((partition, offset))
        return ErrorCode.NONE


def _record_json(key: bytes, value: bytes | None) -> Json:
    decoded = decode_share_state(key, value)
    if decoded is None:
        raise CoordinatorSimError("a record of an unknown type")
    named, state = decoded
    written: Json = {
        "key": {"type": named.record_type, "data": to_json(record_layout(type(named)), named)},
        "value": None,
        "keyBytes": base64_text(key),
        "valueBytes": None,
    }
    if state is not None and value is not None:
        written["value"] = {"version": 0, "data": to_json(record_layout(type(state)), state)}
        written["valueBytes"] = base64_text(value)
    return written


class ShareStateLines:
    """Answers commands, in a world that `init` creates anew."""

    def __init__(self) -> None:
        self._now_ms = START_MS
        self._partitions = 0
        self._is_started = False
        self._feature = 0
        self._topics: dict[str, tuple[bytes, int]] = {}
        self._replies: list[Json] = []
        self._records: list[Json] = []
        self._begin(ShareCoordinatorConfig())

    def _begin(self, config: ShareCoordinatorConfig) -> None:
        self._log = MemoryStateLog(self._committed, self._appended)
        self._coordinator = ShareCoordinator(config, self._log, self, Scheduler().wake_by_group_ms)

    def _committed(self, partition: int, offset: int) -> None:
        self._coordinator.runtime.committed(partition, offset)

    def _appended(self, record: Json) -> None:
        self._records.append(record)

    def partition_count(self, topic_id: bytes) -> int | None:
        """How many partitions a topic has; see `KnownTopics`."""
        return dict(self._topics.values()).get(topic_id)

    def answer(self, command: Json) -> Json:
        """Return the answer to one command."""
        answer: Json = {"id": command["id"]} if "id" in command else {}
        self._replies, self._records = [], []
        _VERBS[command["op"]](self, command)
        self._fire(self._now_ms)
        answer["now"] = self._now_ms
        if self._replies:
            answer["replies"] = self._replies
        if self._records:
            answer["records"] = self._records
        if self._log.deleted:
            answer["deleted"] = [
                {"partition": partition, "before": offset}
                for partition, offset in self._log.deleted
            ]
            self._log.deleted.clear()
        return answer

    # -- time ------------------------------------------------------------------------------

    @property
    def _now(self) -> Instants:
        return Instants(self._now_ms, self._now_ms)

    def _fire(self, end_ms: int) -> None:
        """Fire every timer up to an instant, each at its own."""
        timers = self._coordinator.runtime.timers
        while (due_ms := timers.wake_up_ms()) is not None and due_ms <= end_ms:
            self._now_ms = max(self._now_ms, due_ms)
            self._coordinator.runtime.expire(self._now_ms)
        self._now_ms = max(self._now_ms, end_ms)
        self._coordinator.runtime.now_ms = self._now_ms

    def _advance(self, command: Json) -> None:
        self._fire(self._now_ms + command["ms"])

    # -- verbs -----------------------------------------------------------------------------

    def _init(self, command: Json) -> None:
        given = command.get("config", {})
        fields = {_SETTINGS[name]: int(value) for name, value in given.items()}
        self._partitions = command.get("partitions", 50)
        profile = profile_named(command["profile"]) if "profile" in command else DEFAULT_PROFILE
        self._now_ms = command.get("startMs", START_MS)
        self._is_started = False
        self._feature = 0
        self._topics = {}
        self._begin(
            ShareCoordinatorConfig(
                **fields, state_topic_partitions=self._partitions, profile=profile
            )
        )
        self._coordinator.runtime.now_ms = self._now_ms
        self._coordinator.runtime.timers.start(self._now_ms)
        if command.get("started", True):
            self._startup(command)
            if command.get("elect", True):
                for partition in range(self._partitions):
                    self._coordinator.on_election(partition, 1, self._now)

    def _startup(self, _command: Json) -> None:
        self._is_started = True
        self._coordinator.startup()
        self._coordinator.enable(is_enabled=self._feature > 0, now_ms=self._now_ms)

    def _shutdown(self, _command: Json) -> None:
        self._is_started = False
        self._coordinator.shutdown(self._now_ms)

    def _features(self, command: Json) -> None:
        self._feature = command["share"]
        if self._is_started:
            self._coordinator.enable(is_enabled=self._feature > 0, now_ms=self._now_ms)

    def _change_topics(self, command: Json) -> None:
        for topic in command.get("set", ()):
            name, count = topic["name"], topic.get("partitions", 1)
            topic_id, known = self._topics.get(name, (topic_id_of(topic, name), 0))
            self._topics[name] = topic_id, max(known, count)
        named = [name for name in command.get("remove", ()) if name in self._topics]
        gone = [self._topics.pop(name)[0] for name in named]
        if gone and self._is_started:
            self._coordinator.topics_deleted(gone, self._now_ms)

    def _call(self, command: Json) -> None:
        api, version = command["api"], command["v"]
        layout = layout_of(api_named(api), version, response=False)
        request = JsonReader(structs_module(api)).read(layout, command["data"], defaulted=True)
        answer = partial(self._answered, command.get("id"), api, version)
        finished(self._coordinator.handle(request, answer, self._now_ms))

    def _answered(self, line_id: object, api: str, version: int, response: StateResponse) -> None:
        reply: Json = {} if line_id is None else {"id": line_id}
        reply |= {"at": self._now_ms, "api": api, "v": version}
        reply["data"] = to_json(layout_of(api_named(api), version, response=True), response)
        self._replies.append(reply)

    def _places(self, command: Json) -> list[int]:
        return [command["partition"]] if "partition" in command else list(range(self._partitions))

    def _elect(self, command: Json) -> None:
        for partition in self._places(command):
            self._coordinator.on_election(partition, command.get("epoch", 1), self._now)

    def _resign(self, command: Json) -> None:
        for partition in self._places(command):
            self._coordinator.on_resignation(partition, command.get("epoch"), self._now)

    def _hold(self, command: Json) -> None:
        self._log.is_held = command["hw"]

    def _commit(self, command: Json) -> None:
        for partition in self._places(command):
            end_offset = self._log.end_offset(partition)
            self._log.commit(partition, command.get("offset", end_offset))

    def _fail(self, command: Json) -> None:
        if "append" in command:
            self._log.failures = [ErrorCode[command["append"]]] * command.get("count", 1)
        if "deletions" in command:
            self._log.failing_deletions = command["deletions"]


_VERBS: Final[dict[str, Callable[[ShareStateLines, Json], None]]] = {
    "init": ShareStateLines._init,  # noqa: SLF001 - of this module
    "startup": ShareStateLines._startup,  # noqa: SLF001
    "shutdown": ShareStateLines._shutdown,  # noqa: SLF001
    "features": ShareStateLines._features,  # noqa: SLF001
    "topics": ShareStateLines._change_topics,  # noqa: SLF001
    "call": ShareStateLines._call,  # noqa: SLF001
    "advance": ShareStateLines._advance,  # noqa: SLF001
    "elect": ShareStateLines._elect,  # noqa: SLF001
    "resign": ShareStateLines._resign,  # noqa: SLF001
    "hold": ShareStateLines._hold,  # noqa: SLF001
    "commit": ShareStateLines._commit,  # noqa: SLF001
    "fail": ShareStateLines._fail,  # noqa: SLF001
}
