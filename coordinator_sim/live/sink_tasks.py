"""Sink tasks that really run: FileStreamSink, and those that manifests describe.

A task is a consumer of group `connect-NAME` in a thread of its own; it commits what it has put
every `offset.flush.interval.ms`, before it gives partitions up, and at its end.

Source: kafka trunk, connect/runtime/.../WorkerSinkTask.java, iteration, closePartitions,
commitOffsets; connect/file/.../FileStreamSinkTask.java.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Assigned

from coordinator_sim.connect.plugins.file_stream import sink_line
from coordinator_sim.connect.plugins.manifests import WorkSpec
from coordinator_sim.errors import DataError
from coordinator_sim.live.background import without_waiting

MAX_POLL_RECORDS: Final = 500
"""Default of `max.poll.records`."""

_CONNECT_ERROR: Final = "org.apache.kafka.connect.errors.ConnectException: "
_WAIT_S: Final = 0.2


class Sink(Protocol):
    """Destination of a task's records."""

    def put(self, values: list[bytes | None]) -> None:
        """Take the values of records, in order.

        Raises:
            DataError: the task has failed; the message is its trace.
        """
        ...

    def flush(self) -> None:
        """Make sure that the values put are stored."""
        ...

    def close(self) -> None:
        """Close open resources."""
        ...


class FileSink:
    """Appends lines to a file. Without `file` Java prints them; here they are dropped.

    DEVIATION: a file that takes no more fails the task; Java's PrintStream drops the lines.

    Args:
        config: The task's settings.
        to_text: Converter of the task's values.
    """

    def __init__(
        self, config: Mapping[str, str], to_text: Callable[[bytes | None], str | None]
    ) -> None:
        self._to_text = to_text
        file = config.get("file") or None
        try:
            self._stream = (
                None if file is None else open(file, "ab", buffering=0, opener=without_waiting)  # noqa: SIM115 - until `close`; Path.open takes no opener
            )
        # A value error is a zero byte in the name.
        except (OSError, ValueError) as error:
            raise DataError(
                f"{_CONNECT_ERROR}Couldn't find or create file '{file}' for FileStreamSinkTask: "
                f"{getattr(error, 'strerror', None) or error}"
            ) from None
        if self._stream is not None:
            os.set_blocking(self._stream.fileno(), True)

    def put(self, values: list[bytes | None]) -> None:
        """Append a line for each value; the system gets them at once, as from Java's stream."""
        left = b"".join(sink_line(self._to_text(value)) for value in values)
        if self._stream is None:
            return
        try:
            while left:
                left = left[self._stream.write(left) :]
        except OSError as error:
            raise DataError(f"{_CONNECT_ERROR}{self._stream.name}: {error.strerror}") from None

    def flush(self) -> None:
        """Do nothing: lines are not buffered."""

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()


class SteadySink:
    """Takes records no faster than a manifest says, and discards them.

    Args:
        work: Work in the manifest; a rate of 0 is no limit.
    """

    def __init__(self, work: WorkSpec) -> None:
        self._records_per_s = work.records_per_s

    def put(self, values: list[bytes | None]) -> None:
        """Wait as long as these many records take."""
        if self._records_per_s:
            time.sleep(len(values) / self._records_per_s)

    def flush(self) -> None:
        """Do nothing: records are not kept."""

    def close(self) -> None:
        """Do nothing: there are no open resources."""


class SinkTask:
    """One running sink task.

    Args:
        settings: Settings of its consumer.
        topics: Topics to subscribe to; one that begins with `^` is a pattern.
        sink: Destination of the records.
        flush_interval_s: Time between commits.
        failed: Called in the task's thread with the trace, at most once.
        used: Called in the task's thread with each topic that records come from, once.
    """

    def __init__(
        self,
        settings: Mapping[str, object],
        topics: list[str],
        sink: Sink,
        *,
        flush_interval_s: float,
        failed: Callable[[str], object],
        used: Callable[[str], object],
    ) -> None:
        self._consumer = Consumer(
            {
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "range",
                **settings,
                "enable.auto.commit": False,
            }
        )
        self._topics = topics
        self._sink = sink
        self._flush_interval_s = flush_interval_s
        self._failed = failed
        self._used = used
        self._told: dict[str, None] = {}
        self._stopping = threading.Event()
        self._is_over = threading.Event()
        self._is_abandoned = False
        self._is_paused = False
        self._was_paused = False
        self._put: dict[tuple[str, int], int] = {}
        self._thread = threading.Thread(target=self._run, name=topics[0], daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether its consumer is not closed yet."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to consume."""
        self._thread.start()

    def pause(self, is_paused: bool) -> None:
        """Pause consumption, or continue; the task stays in its group."""
        self._is_paused = is_paused

    def stop(self) -> None:
        """End after the poll in progress, with a last commit; returns when that is done.

        Leaving the group continues in the background: a parked JoinGroup delays it.
        """
        self._stopping.set()
        self._is_over.wait()

    def await_left(self, timeout_s: float) -> None:
        """Wait for the end of the consumer, so that it leaves its group."""
        self._thread.join(timeout_s)

    def abandon(self) -> None:
        """End without a commit and without being waited for."""
        self._is_abandoned = True
        self._stopping.set()

    def _run(self) -> None:
        try:
            self._consume()
        except DataError as error:
            self._failed(str(error))
        except KafkaException as error:
            self._failed(f"{_CONNECT_ERROR}{error.args[0].str()}")
        finally:  # after a bug too, so that `stop` does not wait for ever
            self._sink.close()
            self._is_over.set()
            self._consumer.close()

    def _consume(self) -> None:
        self._consumer.subscribe(self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke)
        flush_at_s = time.monotonic() + self._flush_interval_s
        while not self._stopping.is_set():
            self._follow_pause()
            self._deliver(self._consumer.consume(MAX_POLL_RECORDS, _WAIT_S))
            if time.monotonic() >= flush_at_s:
                self._commit()
                flush_at_s = time.monotonic() + self._flush_interval_s
        self._commit()

    def _deliver(self, messages: list[Message]) -> None:
        values: list[bytes | None] = []
        for message in messages:
            error = message.error()
            if error is not None:
                # A topic that does not exist yet is waited for, as Java's consumer does.
                is_waited_for = error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                if is_waited_for or error.retriable() or error.code() < 0:
                    continue
                raise KafkaException(error)
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if topic is None or partition is None or offset is None:
                continue
            value = message.value()
            values.append(value.encode() if isinstance(value, str) else value)
            self._put[topic, partition] = offset + 1
            if topic not in self._told:
                self._told[topic] = None
                self._used(topic)
        if values:
            self._sink.put(values)

    def _commit(self) -> None:
        """Flush and commit; a refused commit is tried again next time, as in Java.

        If a rebalance prevents a commit, the next owner repeats the records.
        """
        if not self._put or self._is_abandoned:
            return
        self._sink.flush()
        offsets = [Assigned(topic, number, at) for (topic, number), at in self._put.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() < 0 and not error.args[0].retriable():
                raise
        else:
            self._put.clear()

    def _follow_pause(self) -> None:
        if self._is_paused != self._was_paused:
            self._was_paused = self._is_paused
            change = self._consumer.pause if self._is_paused else self._consumer.resume
            change(self._consumer.assignment())

    def _on_assign(self, consumer: Consumer, partitions: list[Assigned]) -> None:
        consumer.assign(partitions)
        if self._was_paused:
            consumer.pause(partitions)

    def _on_revoke(self, _consumer: Consumer, partitions: list[Assigned]) -> None:
        self._commit()
        for each in partitions:
            self._put.pop((each.topic, each.partition), None)
