"""Source tasks that really run: FileStreamSource, and those that manifests describe.

A task polls, writes what it polled, and commits the offsets of what was written every
`offset.flush.interval.ms` and at its end.

Source: kafka trunk, connect/runtime/.../AbstractWorkerSourceTask.java, execute;
WorkerSourceTask.commitOffsets; connect/file/.../FileStreamSourceTask.java.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from io import BufferedReader
from typing import Final, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from msgspec import Struct

from coordinator_sim.connect.plugins import file_stream
from coordinator_sim.connect.plugins.manifests import WorkSpec
from coordinator_sim.connect.stores.offset_store import offset_key, offset_value
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.live.background import in_thread, without_waiting
from coordinator_sim.live.source_offsets import SourceOffsets

_CONNECT_ERROR: Final = "org.apache.kafka.connect.errors.ConnectException: "
# DEVIATION: records are waited for so long after each poll, before their offsets are told of; Java
# waits for them when it commits, for `offset.flush.timeout.ms`, and commits what is through.
_FLUSH_S: Final = 120.0
_READ_BYTES: Final = 1 << 16
LONGEST_LINE: Final = 1 << 24
"""Java chars of a line, about.

DEVIATION: Java's buffer grows until the worker has no memory left, as with `/dev/zero`.
"""
_POLL_S: Final = 0.1


class SourceRecord(Struct, frozen=True, kw_only=True):
    """A record that a task polled, and the source position after it."""

    topic: str
    text: str
    partition: dict[str, object]
    offset: dict[str, object]


class Source(Protocol):
    """The source of a task's records."""

    async def open(self, offsets: SourceOffsets, task: ConnectorTaskId) -> None:
        """Look up the start position."""
        ...

    def poll(self) -> tuple[tuple[SourceRecord, ...], float]:
        """Return available records, and the seconds until more are expected."""
        ...

    def close(self) -> None:
        """Close open resources."""
        ...


class TellingSource:
    """A source that reports each topic it has records for, once.

    Args:
        source: Source of the records.
        used: Called with the topic.
    """

    def __init__(self, source: Source, used: Callable[[str], object]) -> None:
        self._source = source
        self._used = used
        self._told: dict[str, None] = {}

    async def open(self, offsets: SourceOffsets, task: ConnectorTaskId) -> None:
        """Look up the start position."""
        await self._source.open(offsets, task)

    def poll(self) -> tuple[tuple[SourceRecord, ...], float]:
        """Return available records, and the seconds until more are expected."""
        records, pause_s = self._source.poll()
        for topic in dict.fromkeys(record.topic for record in records):
            if topic not in self._told:
                self._told[topic] = None
                self._used(topic)
        return records, pause_s

    def close(self) -> None:
        """Close open resources."""
        self._source.close()


class FileSource:
    """Lines of a file, as FileStreamSourceTask reads them.

    DEVIATION: without `file` Java reads the worker's stdin; here such a task reads nothing.

    Args:
        config: The task's settings.
    """

    def __init__(self, config: Mapping[str, str]) -> None:
        self._file = config.get("file") or None
        self._topic = config["topic"]
        self._batch_size = int(config.get("batch.size", file_stream.DEFAULT_BATCH_SIZE))
        self._position = 0
        self._stream: BufferedReader | None = None
        self._lines: file_stream.LineReader | None = None

    async def open(self, offsets: SourceOffsets, task: ConnectorTaskId) -> None:
        """Look up the position.

        Raises:
            DataError: the committed position is not a number.
        """
        offset = await offsets.offset_of(task.connector, file_stream.source_partition(self._file))
        position = 0 if offset is None else offset.get(file_stream.POSITION_FIELD)
        if position is not None and not isinstance(position, int):
            raise DataError(f"{_CONNECT_ERROR}Offset position is the incorrect type")
        self._position = position or 0

    def poll(self) -> tuple[tuple[SourceRecord, ...], float]:
        """Return available lines; a file that does not exist yet is waited for.

        Raises:
            DataError: the file cannot be opened or read, or a line is too long; the message is the
                task's trace.
        """
        lines = self._reader()
        if lines is None or self._stream is None:
            return (), file_stream.WAIT_MS / 1000
        try:
            data = self._stream.read(_READ_BYTES)
        except OSError as error:
            raise self._failed(error) from None
        if data:
            lines.feed(data)
        found, waits = lines.poll()
        if lines.buffer_units > LONGEST_LINE:
            raise DataError(f"{_CONNECT_ERROR}{self._file}: a line beyond {LONGEST_LINE} chars")
        records = tuple(
            SourceRecord(
                topic=self._topic,
                text=line.text,
                partition=file_stream.source_partition(self._file),
                offset=file_stream.source_offset(line.position),
            )
            for line in found
        )
        return records, file_stream.WAIT_MS / 1000 if waits else 0

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()

    def _reader(self) -> file_stream.LineReader | None:
        if self._lines is None and self._file is not None:
            try:
                self._stream = open(self._file, "rb", opener=without_waiting)  # noqa: SIM115 - until `close`; Path.open takes no opener
                if self._position:
                    self._stream.seek(self._position)
            except (FileNotFoundError, IsADirectoryError):
                return None  # Java opens a directory, and reads nothing from it
            except (OSError, ValueError, OverflowError) as error:
                raise self._failed(error) from None
            self._lines = file_stream.LineReader(self._position, batch_size=self._batch_size)
        return self._lines

    def _failed(self, error: Exception) -> DataError:
        """The failure of a file that cannot be read, or whose name or position cannot be."""
        reason = getattr(error, "strerror", None) or error
        return DataError(
            f"{_CONNECT_ERROR}java.nio.file.FileSystemException: {self._file}: {reason}"
        )


class SteadySource:
    """Numbered records at the manifest's rate, without end; they go to `topic`.

    Args:
        config: The task's settings; without `topic` the topic has the connector's name.
        task: Task whose records they are.
        work: Work in the manifest.
    """

    def __init__(self, config: Mapping[str, str], task: ConnectorTaskId, work: WorkSpec) -> None:
        self._topic = config.get("topic", task.connector)
        self._work = work
        self._partition: dict[str, object] = {"task": task.task}
        self._number = 0
        self._owed = 0.0
        self._waits_s = work.start_ms / 1000

    async def open(self, offsets: SourceOffsets, task: ConnectorTaskId) -> None:
        """Continue after the last committed number."""
        offset = await offsets.offset_of(task.connector, self._partition)
        number = 0 if offset is None else offset.get("number")
        self._number = number if isinstance(number, int) else 0

    def poll(self) -> tuple[tuple[SourceRecord, ...], float]:
        """Return the records due since the last poll."""
        if self._waits_s:
            waits_s, self._waits_s = self._waits_s, 0.0
            return (), waits_s
        self._owed += self._work.records_per_s * _POLL_S
        count = int(self._owed)
        self._owed -= count
        first = self._number + 1
        self._number += count
        records = tuple(
            SourceRecord(
                topic=self._topic,
                text=str(number).ljust(self._work.record_bytes, "."),
                partition=self._partition,
                offset={"number": number},
            )
            for number in range(first, first + count)
        )
        return records, _POLL_S

    def close(self) -> None:
        """Do nothing: there are no open resources."""


class SourceTask:
    """One running source task.

    Args:
        task: Id of the task.
        source: Source of its records.
        offsets: Offsets to start from and to commit.
        to_bytes: Converter of its values.
        producer: Producer of its records.
        is_transactional: Whether each poll is one transaction that includes the offsets.
        flush_interval_s: Time between commits of offsets.
    """

    def __init__(  # noqa: PLR0913 - what a task is put together from
        self,
        task: ConnectorTaskId,
        source: Source,
        offsets: SourceOffsets,
        *,
        to_bytes: Callable[[str], bytes],
        producer: Producer,
        is_transactional: bool,
        flush_interval_s: float,
    ) -> None:
        self._task = task
        self._source = source
        self._offsets = offsets
        self._to_bytes = to_bytes
        self._producer = producer
        self._is_transactional = is_transactional
        self._flush_interval_s = flush_interval_s
        self._stopping = asyncio.Event()
        self._is_paused = False
        self._unwritten: list[str] = []
        self._pending: dict[str, SourceRecord] = {}

    def pause(self, is_paused: bool) -> None:
        """Pause polling, or continue."""
        self._is_paused = is_paused

    def stop(self) -> None:
        """End after the poll in progress; `run` returns then."""
        self._stopping.set()

    async def run(self) -> None:
        """Read and write until stopped.

        Raises:
            DataError: the task has failed; the message is its trace.
        """
        try:
            await self._source.open(self._offsets, self._task)
            await self._turn_until_stopped()
        finally:
            self._source.close()
        await self._commit()

    async def _turn_until_stopped(self) -> None:
        loop = asyncio.get_running_loop()
        flush_at_s = loop.time() + self._flush_interval_s
        while not self._stopping.is_set():
            records, idle_s = ((), _POLL_S) if self._is_paused else self._source.poll()
            if records:
                await self._in_thread(self._write, records)
            if loop.time() >= flush_at_s:
                await self._commit()
                flush_at_s = loop.time() + self._flush_interval_s
            # Also without a pause, others go on.
            await self._idle(min(idle_s, max(flush_at_s - loop.time(), 0)))

    async def _idle(self, seconds: float) -> None:
        await asyncio.sleep(0)
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    async def _in_thread(self, work: Callable[..., object], *arguments: object) -> None:
        try:
            await in_thread(partial(work, *arguments))
        except KafkaException as error:
            raise DataError(
                f"{_CONNECT_ERROR}Unrecoverable exception from producer send callback: "
                f"{error.args[0].str()}"
            ) from None

    def _write(self, records: tuple[SourceRecord, ...]) -> None:
        """Write the records of one poll and wait for all of them; runs in a thread."""
        if self._is_transactional:
            self._producer.begin_transaction()
        for record in records:
            self._producer.produce(
                record.topic, self._to_bytes(record.text), on_delivery=self._delivered
            )
            self._pending[str(record.partition)] = record
        if self._is_transactional:
            self._write_offsets()
            self._producer.commit_transaction(_FLUSH_S)
            return
        left_count = self._producer.flush(_FLUSH_S)
        if left_count:
            self._unwritten.append(f"{left_count} records were not written in time")
        if self._unwritten:
            raise DataError(
                f"{_CONNECT_ERROR}Unrecoverable exception from producer send callback: "
                f"{self._unwritten[0]}"
            )

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._unwritten.append(error.str())

    def _write_offsets(self) -> None:
        for record in self._pending.values():
            self._producer.produce(
                self._offsets.topic,
                key=offset_key(self._task.connector, record.partition),
                value=offset_value(record.offset),
            )
        self._pending.clear()

    async def _commit(self) -> None:
        """Commit the offsets of records written since the last commit.

        A commit that fails is tried again with the next one, as in Java.
        """
        pending = tuple(self._pending.items())
        for key, record in pending:
            error = await self._offsets.commit(
                self._task.connector, record.partition, record.offset
            )
            if error is None and self._pending.get(key) is record:
                del self._pending[key]
