"""Connectors and tasks of a live worker: start, pause, stop, and failures as manifests say.

FileStreamSource and FileStreamSink are genuine; tasks of other classes move records at the
manifest's rate. The worker checks that a class is installed before it asks.

Conversion between texts and record values, as Connect's own converters do it.

Only strings are supported, which FileStream connectors use. The connector's setting names the
converter, else the worker's.

Sink tasks that really run: FileStreamSink, and those that manifests describe.

A task is a consumer of group `connect-NAME` in a thread of its own; it commits what it has put
every `offset.flush.interval.ms`, before it gives partitions up, and at its end.

Source: kafka trunk, connect/api/.../storage/StringConverter.java, connect/json/.../JsonConverter
.java, fromConnectData and toConnectData; Worker.buildWorkerTask for whose setting counts;
connect/runtime/.../WorkerSinkTask.java, iteration, closePartitions, commitOffsets;
connect/file/.../FileStreamSinkTask.java.
"""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Assigned
from msgspec import Struct

from coordinator_sim.connect.effects import (
    CancelTask,
    ChangeTargetState,
    StartConnector,
    StartTask,
    StopConnector,
    StopTask,
    TargetState,
)
from coordinator_sim.connect.plugins.file_stream import SINK_CLASS, SOURCE_CLASS, sink_line
from coordinator_sim.connect.plugins.manifests import ConnectorManifest, FailureLaw, WorkSpec
from coordinator_sim.connect.plugins.registry import Plugins
from coordinator_sim.connect.stores.json_converter import from_json, to_json
from coordinator_sim.errors import DataError, InvariantViolation
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.live.background import in_thread, without_waiting
from coordinator_sim.live.chance import SystemChance
from coordinator_sim.live.data_plane import DataPlane
from coordinator_sim.live.source_offsets import SourceOffsets
from coordinator_sim.live.source_tasks import (
    FileSource,
    Source,
    SourceTask,
    SteadySource,
    TellingSource,
)

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


_PACKAGE: Final = "org.apache.kafka.connect."
STRING_CONVERTER: Final = f"{_PACKAGE}storage.StringConverter"
JSON_CONVERTER: Final = f"{_PACKAGE}json.JsonConverter"
_ALIASES: Final = {
    "StringConverter": STRING_CONVERTER,
    "String": STRING_CONVERTER,
    "JsonConverter": JSON_CONVERTER,
    "Json": JSON_CONVERTER,
}


class ValueConverter:
    """The converter of a task's values.

    Args:
        connector: The connector's settings.
        worker: The worker's properties.

    Raises:
        DataError: a converter that is unknown, or does not support strings.
    """

    def __init__(self, connector: Mapping[str, str], worker: Mapping[str, str]) -> None:
        settings = connector if "value.converter" in connector else worker
        named = settings.get("value.converter", JSON_CONVERTER)
        self._class = _ALIASES.get(named, named)
        if self._class not in (STRING_CONVERTER, JSON_CONVERTER):
            raise DataError(
                f"{_PACKAGE}errors.DataException: {named} does not convert strings here; use "
                f"{STRING_CONVERTER} or {JSON_CONVERTER}"
            )
        enabled = settings.get("value.converter.schemas.enable", "true")
        self._has_schema = enabled.strip().lower() == "true"

    def to_bytes(self, text: str) -> bytes:
        """Convert a line of text to a record's value."""
        if self._class == STRING_CONVERTER:
            return text.encode()
        if self._has_schema:
            return to_json({"schema": {"type": "string", "optional": False}, "payload": text})
        return to_json([text])[1:-1]

    def to_text(self, value: bytes | None) -> str | None:
        """Convert a record's value to text as FileStreamSink prints it; None for null.

        DEVIATION: a structured value is printed as JSON, not as Java's maps and structs print.

        Raises:
            DataError: the converter cannot read the bytes; the message is the task's trace.
        """
        if value is None:
            return None
        if self._class == STRING_CONVERTER:
            return value.decode(errors="replace")
        try:
            parsed = from_json(value)
        except DataError as error:
            raise DataError(
                f"{_PACKAGE}errors.DataException: Converting byte[] to Kafka Connect data failed "
                f"due to serialization error: {error}"
            ) from None
        if self._has_schema:
            if not isinstance(parsed, dict) or set(parsed) != {"schema", "payload"}:
                raise DataError(
                    f"{_PACKAGE}errors.DataException: JsonConverter with schemas.enable requires "
                    '"schema" and "payload" fields and may not contain additional fields. If you '
                    "are trying to deserialize plain JSON data, set schemas.enable=false in your "
                    "converter configuration."
                )
            parsed = parsed["payload"]
        if parsed is None or isinstance(parsed, str):
            return parsed
        return json.dumps(parsed, separators=(",", ":"), ensure_ascii=False)


WorkEffect = StartConnector | StartTask | StopConnector | StopTask | CancelTask | ChangeTargetState
"""Effects that are carried out here."""

_MS: Final = 1000
_LEAVE_S: Final = 5.0
_MILLION: Final = 1_000_000
_CONFIG_ERROR: Final = "org.apache.kafka.common.config.ConfigException: "
_NO_WORK: Final = WorkSpec()


class WorkListener(Protocol):
    """Callbacks to a worker's loop."""

    def answered(self, token: int, value: object, error: str | None) -> None:
        """Handle the answer to the effect with this token."""
        ...

    def work_failed(self, resource: str | ConnectorTaskId, trace: str) -> None:
        """Handle a connector or a task that failed by itself."""
        ...

    def topic_used(self, task: ConnectorTaskId, topic: str) -> None:
        """Handle a task's first record for a topic, or from it."""
        ...


class WorkSettings(Struct, frozen=True, kw_only=True):
    """Settings of the worker that the work needs.

    Args:
        properties: Worker properties; its converters count where a connector names none.
    """

    bootstrap: str
    group_id: str
    flush_interval_ms: int
    properties: dict[str, str]


class RunningTask(Protocol):
    """A running task."""

    def pause(self, is_paused: bool) -> None:
        """Pause the task, or continue."""
        ...

    async def end(self) -> None:
        """Stop in an orderly way; returns when it is over."""
        ...

    def cancel(self) -> None:
        """Abandon the task."""
        ...


class SourceRun:
    """A source task on the loop.

    Args:
        work: The task.
        listener: Told of its failure.
        task: Id of the task.
    """

    def __init__(self, work: SourceTask, listener: WorkListener, task: ConnectorTaskId) -> None:
        self._work = work
        self._listener = listener
        self._task = task
        self._running = asyncio.get_running_loop().create_task(self._run())

    def pause(self, is_paused: bool) -> None:
        """Pause the task, or continue."""
        self._work.pause(is_paused)

    async def end(self) -> None:
        """Stop in an orderly way."""
        self._work.stop()
        await asyncio.wait([self._running])

    def cancel(self) -> None:
        """Abandon the task."""
        self._running.cancel()

    async def _run(self) -> None:
        try:
            await self._work.run()
        except DataError as error:
            self._listener.work_failed(self._task, str(error))


class SinkRun:
    """A sink task in its thread.

    Args:
        work: The task, not yet started.
    """

    def __init__(self, work: SinkTask) -> None:
        self._work = work
        work.start()

    def pause(self, is_paused: bool) -> None:
        """Pause the task, or continue."""
        self._work.pause(is_paused)

    async def end(self) -> None:
        """Stop in an orderly way."""
        await in_thread(self._work.stop)

    @property
    def is_alive(self) -> bool:
        """Whether its consumer is not closed yet."""
        return self._work.is_alive

    async def left(self) -> None:
        """Wait a moment for the task's consumer to leave its group."""
        await in_thread(partial(self._work.await_left, _LEAVE_S))

    def cancel(self) -> None:
        """Abandon the task."""
        self._work.abandon()


class WorkRunner:
    """The connectors and tasks of one worker.

    Args:
        plugins: The installed plugins.
        plane: The worker's topics.
        offsets: The cluster's source offsets.
        settings: Settings of the worker.
        listener: Receives the answers.
    """

    def __init__(
        self,
        plugins: Plugins,
        plane: DataPlane,
        offsets: SourceOffsets,
        settings: WorkSettings,
        listener: WorkListener,
    ) -> None:
        self._plugins = plugins
        self._plane = plane
        self._offsets = offsets
        self._settings = settings
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._chance = SystemChance()
        self._connectors: dict[str, ConnectorManifest] = {}
        self._tasks: dict[ConnectorTaskId, RunningTask] = {}
        self._failures: dict[str | ConnectorTaskId, asyncio.TimerHandle] = {}
        self._ending: dict[asyncio.Task[None], None] = {}
        self._sinks: list[SinkRun] = []

    def carry_out(self, effect: WorkEffect) -> None:
        """Begin to carry out an effect."""
        match effect:
            case StartConnector():
                self._start_connector(effect)
            case StartTask():
                self._start_task(effect)
            case StopConnector(token=token, connector=connector):
                self._stop_connector(token, connector)
            case StopTask(token=token, task=task):
                self._stop_task(token, task)
            case CancelTask(task=task):
                running = self._forget(task)
                if running is not None:
                    running.cancel()
            case ChangeTargetState(connector=connector, target_state=target_state):
                for task, running in self._tasks.items():
                    if task.connector == connector:
                        running.pause(target_state is not TargetState.STARTED)

    async def close(self) -> None:
        """End running work in an orderly way; what takes too long ends with the process."""
        for handle in self._failures.values():
            handle.cancel()
        left = [self._loop.create_task(running.end()) for running in self._tasks.values()]
        self._tasks.clear()
        if left or self._ending:
            await asyncio.wait((*left, *self._ending), timeout=_LEAVE_S)
        await asyncio.gather(*(sink.left() for sink in self._sinks))

    # Connectors.

    def _start_connector(self, effect: StartConnector) -> None:
        manifest = self._manifest(effect.config)
        self._connectors[effect.connector] = manifest
        work = _work_of(manifest)
        trace = self._failure_at_start(work.connector_failure)
        delay_s = 0 if work is _NO_WORK else work.connector_start_ms / _MS
        self._loop.call_later(delay_s, self._listener.answered, effect.token, None, trace)
        if trace is None:
            self._plan_failure(effect.connector, work.connector_failure)

    def _stop_connector(self, token: int, connector: str) -> None:
        self._cancel_failure(connector)
        manifest = self._connectors.pop(connector, None)
        work = _NO_WORK if manifest is None else _work_of(manifest)
        delay_s = 0 if work is _NO_WORK else work.connector_stop_ms / _MS
        self._loop.call_later(delay_s, self._listener.answered, token, None, None)

    # Tasks.

    def _start_task(self, effect: StartTask) -> None:
        manifest = self._manifest(effect.connector_config)
        work = _work_of(manifest)
        trace = self._failure_at_start(work.failure)
        if trace is None:
            try:
                running = self._made(effect, manifest, work)
            except DataError as error:
                trace = str(error)
            else:
                running.pause(effect.target_state is not TargetState.STARTED)
                self._tasks[effect.task] = running
                self._plan_failure(effect.task, work.failure)
        self._loop.call_soon(self._listener.answered, effect.token, None, trace)

    def _made(self, effect: StartTask, manifest: ConnectorManifest, work: WorkSpec) -> RunningTask:
        """Return the task, running.

        Raises:
            DataError: the task cannot run; the message is its trace.
        """
        config = {**effect.connector_config, **effect.config}
        if effect.connector_config.get("transforms", "").strip():
            raise DataError(
                f"{_CONFIG_ERROR}transforms={effect.connector_config['transforms']}: this worker "
                "runs no transformations; leave `transforms` out"
            )
        converter = ValueConverter(effect.connector_config, self._settings.properties)
        if manifest.type == "sink":
            sink: Sink = SteadySink(work)
            if manifest.class_name == SINK_CLASS:
                sink = FileSink(config, converter.to_text)
            run = SinkRun(self._sink_task(effect.task, config, sink))
            self._sinks = [each for each in self._sinks if each.is_alive] + [run]
            return run
        source: Source = SteadySource(config, effect.task, work)
        if manifest.class_name == SOURCE_CLASS:
            source = FileSource(config)
        return SourceRun(
            self._source_task(
                effect.task, config, TellingSource(source, self._teller(effect.task)), converter
            ),
            self._listener,
            effect.task,
        )

    def _teller(self, task: ConnectorTaskId) -> Callable[[str], object]:
        """Return a callback that reports a topic of a task, from any thread."""
        return lambda topic: self._loop.call_soon_threadsafe(self._listener.topic_used, task, topic)

    def _source_task(
        self,
        task: ConnectorTaskId,
        config: Mapping[str, str],
        source: Source,
        converter: ValueConverter,
    ) -> SourceTask:
        name = f"{task.connector}-{task.task}"
        fenced = self._plane.producer_of(f"{self._settings.group_id}-{name}")
        own = overrides(config, "producer.override.")
        try:
            producer = self._plane.task_producer(name, own) if fenced is None else fenced
        except KafkaException as error:
            raise DataError(f"{_CONFIG_ERROR}{error.args[0].str()}") from None
        return SourceTask(
            task,
            source,
            self._offsets,
            to_bytes=converter.to_bytes,
            producer=producer,
            is_transactional=fenced is not None,
            flush_interval_s=self._settings.flush_interval_ms / _MS,
        )

    def _sink_task(self, task: ConnectorTaskId, config: Mapping[str, str], sink: Sink) -> SinkTask:
        settings = {
            "bootstrap.servers": self._settings.bootstrap,
            "group.id": f"connect-{task.connector}",
            "client.id": f"connector-consumer-{task.connector}-{task.task}",
            "log_level": 0,
            **overrides(config, "consumer.override."),
        }
        try:
            return SinkTask(
                settings,
                sink_topics(config),
                sink,
                flush_interval_s=self._settings.flush_interval_ms / _MS,
                failed=lambda trace: self._loop.call_soon_threadsafe(
                    self._listener.work_failed, task, trace
                ),
                used=self._teller(task),
            )
        except KafkaException as error:
            raise DataError(f"{_CONFIG_ERROR}{error.args[0].str()}") from None

    def _stop_task(self, token: int, task: ConnectorTaskId) -> None:
        running = self._forget(task)
        ending = self._loop.create_task(self._end(token, running))
        self._ending[ending] = None
        ending.add_done_callback(self._ending.pop)

    async def _end(self, token: int, running: RunningTask | None) -> None:
        if running is not None:
            await running.end()
        self._listener.answered(token, None, None)

    def _forget(self, task: ConnectorTaskId) -> RunningTask | None:
        self._cancel_failure(task)
        return self._tasks.pop(task, None)

    # Failures that manifests ask for.

    def _failure_at_start(self, law: FailureLaw | None) -> str | None:
        return law.trace if law is not None and law.at_start and self._strikes(law) else None

    def _plan_failure(self, resource: str | ConnectorTaskId, law: FailureLaw | None) -> None:
        if law is not None and law.after_ms is not None and self._strikes(law):
            self._failures[resource] = self._loop.call_later(
                law.after_ms / _MS, self._fail, resource, law.trace
            )

    def _strikes(self, law: FailureLaw) -> bool:
        return self._chance.draw("work-failure", law.trace, _MILLION) < law.chance_per_million

    def _cancel_failure(self, resource: str | ConnectorTaskId) -> None:
        handle = self._failures.pop(resource, None)
        if handle is not None:
            handle.cancel()

    def _fail(self, resource: str | ConnectorTaskId, trace: str) -> None:
        if isinstance(resource, ConnectorTaskId):
            running = self._forget(resource)
            if running is not None:
                running.cancel()
        self._listener.work_failed(resource, trace)

    def _manifest(self, config: Mapping[str, str]) -> ConnectorManifest:
        """Return the manifest of a connector; the worker asks only for installed ones."""
        plugin = self._plugins.connector(config["connector.class"])
        if plugin.manifest is None:
            raise InvariantViolation(f"{plugin.class_name} is a connector without a manifest")
        return plugin.manifest


def sink_topics(config: Mapping[str, str]) -> list[str]:
    """Return a sink's subscription: names, or one pattern in librdkafka's form."""
    pattern = config.get("topics.regex")
    if pattern:
        return [pattern if pattern.startswith("^") else f"^{pattern}$"]
    return [name.strip() for name in config.get("topics", "").split(",") if name.strip()]


def overrides(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return a connector's settings of its client; names unknown to librdkafka fail the task."""
    return {
        name.removeprefix(prefix): value
        for name, value in config.items()
        if name.startswith(prefix)
    }


def _work_of(manifest: ConnectorManifest) -> WorkSpec:
    """Return the manifest's work; genuine classes have none."""
    return _NO_WORK if manifest.class_name in (SOURCE_CLASS, SINK_CLASS) else manifest.work
