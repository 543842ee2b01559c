"""The offsets of source connectors that a worker keeps: the last value of every key.

Source: kafka trunk, connect/runtime/.../storage/KafkaOffsetBackingStore.java, OffsetUtils.java,
OffsetStorageWriter.java (the bytes).
"""

from collections.abc import Mapping, Sequence

from coordinator_sim.connect.effects import RecordRun, TopicRecord
from coordinator_sim.connect.stores.json_converter import from_json, to_json
from coordinator_sim.connect.stores.topic_log import InternalTopic, Spawn, TopicLog, await_result
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Wait
from coordinator_sim.errors import DataError


def offset_key(connector: str, partition: Mapping[str, object]) -> bytes:
    """The key of a source partition's offset, its fields in the order given."""
    return to_json([connector, partition])


def offset_value(offset: Mapping[str, object] | None) -> bytes | None:
    """The value of a source partition's offset; a tombstone for None."""
    return None if offset is None else to_json(offset)


def source_partition_of(key: bytes | None) -> tuple[str, dict[str, object]] | None:
    """Return the connector and source partition that a key names; None for another form.

    Source: OffsetUtils.processPartitionKey.
    """
    try:
        parts = from_json(key)
    except DataError:
        return None
    match parts:
        case [str(connector), dict(partition)]:
            return connector, {**partition}
    return None


class OffsetStore:
    """The port of KafkaOffsetBackingStore.

    Records of a run are only counted, at their cost: a run stands for keys that no connector of the
    scenario asks for.

    Args:
        outbox: The worker's outbox.
        spawn: Begins a thread of the worker.
        topic: The offset topic.

    Attributes:
        record_count: Records read so far, including those of runs.
    """

    def __init__(self, outbox: Outbox, spawn: Spawn, *, topic: InternalTopic) -> None:
        self._outbox = outbox
        self._spawn = spawn
        self._log = TopicLog(outbox, spawn, topic=topic, consumed=self._read)
        self._data: dict[bytes | None, bytes] = {}
        self._partitions: dict[str, dict[bytes, dict[str, object]]] = {}
        self.record_count = 0

    @property
    def log(self) -> TopicLog:
        """The offset topic; the worker hands it what is fetched."""
        return self._log

    def start(self) -> Blocking[None]:
        """Read the topic to its end.

        Raises:
            JavaException: see `TopicLog.start`.
        """
        yield from self._log.start()

    def stop(self) -> Blocking[None]:
        """End the reader."""
        yield from self._log.stop()

    def get(self, keys: Sequence[bytes], timeout_ms: int) -> Blocking[dict[bytes, bytes | None]]:
        """Return the values of keys, read up to the present end of the topic.

        Raises:
            TimeoutException: the end is not reached in time.
            ExecutionException: reading failed.
        """
        yield from self._log.await_end(timeout_ms)
        return {key: self._data.get(key) for key in keys}

    def put(self, values: Sequence[tuple[bytes, bytes | None]]) -> Pending[object]:
        """Write keys and values; done when all are written, or with the first error.

        Without values the result is never completed, as in Java. Returns before writing.
        """
        outcome: Pending[object] = Pending()
        pendings = [self._log.send(key, value) for key, value in values]
        self._spawn(_settle(pendings, outcome))
        return outcome

    def connector_partitions(self, connector: str) -> tuple[dict[str, object], ...]:
        """Return the connector's source partitions with an offset, in the order first read."""
        return tuple(self._partitions.get(connector, {}).values())

    def offset_of(self, key: bytes) -> bytes | None:
        """Return the last value of a key, without reading on."""
        return self._data.get(key)

    def await_put(self, outcome: Pending[object], timeout_ms: int) -> Blocking[None]:
        """Wait for a `put`.

        Raises:
            TimeoutException: the write takes too long.
            ExecutionException: a record failed; the cause is the first failure's.
        """
        yield from await_result(outcome, self._outbox, timeout_ms)

    def _read(self, record: TopicRecord | RecordRun) -> None:
        if isinstance(record, RecordRun):
            self.record_count += record.count
            return
        self.record_count += 1
        self._note_partition(record)
        if record.value is None:
            self._data.pop(record.key, None)
        else:
            self._data[record.key] = record.value

    def _note_partition(self, record: TopicRecord) -> None:
        named = source_partition_of(record.key)
        if named is None or record.key is None:
            return
        connector, partition = named
        known = self._partitions.setdefault(connector, {})
        # Equal maps are one source partition, whatever the order of their fields on disk.
        identity = to_json(dict(sorted(partition.items())))
        if record.value is None:
            known.pop(identity, None)
        else:
            known[identity] = partition


def _settle(pendings: list[Pending[object]], outcome: Pending[object]) -> Blocking[None]:
    """Complete `outcome` when all succeeded or the first failed, as SetCallbackFuture."""
    while pendings and not outcome.done:
        done = [pending for pending in pendings if pending.done]
        failed = next((pending.error for pending in done if pending.error is not None), None)
        if failed is not None:
            outcome.complete(error=failed)
        elif len(done) == len(pendings):
            outcome.complete()
        else:
            yield Wait(*(pending for pending in pendings if not pending.done))
