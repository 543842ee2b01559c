"""The configuration of a Connect cluster on its config topic: reading and writing it.

A written record takes effect only once it has been read back. With exactly-once source support the
leader writes with a fencible producer, so that a replaced leader can no longer write.

Source: kafka trunk, connect/runtime/.../storage/KafkaConfigBackingStore.java.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from coordinator_sim.connect.effects import (
    CloseProducer,
    InitTransactions,
    ProduceInTransaction,
    TargetState,
)
from coordinator_sim.connect.exceptions import (
    UNSUPPORTED_VERSION,
    ClientException,
    ConfigException,
    ConnectException,
    ExecutionException,
    JavaException,
    PrivilegedWriteException,
    TimeoutException,
)
from coordinator_sim.connect.stores.config_records import (
    SESSION_KEY_KEY,
    RestartRequest,
    SessionKey,
    commit_tasks_key,
    commit_value,
    connector_key,
    logger_cluster_key,
    logger_level_value,
    properties_value,
    restart_key,
    restart_value,
    session_key_value,
    target_state_key,
    target_state_value,
    task_count_record_key,
    task_count_record_value,
    task_key,
)
from coordinator_sim.connect.stores.config_state import ClusterConfigState, Properties
from coordinator_sim.connect.stores.config_table import ConfigListener, ConfigTable
from coordinator_sim.connect.stores.topic_log import InternalTopic, Spawn, TopicLog, await_result
from coordinator_sim.connect.thread import Blocking, Outbox, Wait
from coordinator_sim.kafka.resources import ConnectorTaskId

READ_WRITE_TOTAL_TIMEOUT_MS: Final = 30_000
"""KafkaConfigBackingStore.READ_WRITE_TOTAL_TIMEOUT_MS: one call, writes and reads together."""

_Records = Sequence[tuple[str, bytes | None]]


class ConfigStore:
    """The port of KafkaConfigBackingStore.

    Args:
        outbox: The worker's outbox.
        spawn: Begins a thread of the worker.
        topic: The config topic.
        transactional_id: Of the fencible producer, `connect-cluster-<group.id>`; None where
            `exactly.once.source.support` is disabled.
    """

    def __init__(
        self,
        outbox: Outbox,
        spawn: Spawn,
        *,
        topic: InternalTopic,
        transactional_id: str | None = None,
    ) -> None:
        self._outbox = outbox
        self._table = ConfigTable()
        self._log = TopicLog(outbox, spawn, topic=topic, consumed=self._table.read)
        self._transactional_id = transactional_id
        self._has_privileges = False

    @property
    def log(self) -> TopicLog:
        """The config topic; the worker hands it what is fetched."""
        return self._log

    def set_update_listener(self, listener: ConfigListener) -> None:
        """Set the listener that hears of every record read after the start."""
        self._table.listener = listener

    # -- start and stop --------------------------------------------------------------------

    def start(self) -> Blocking[None]:
        """Read the topic to its end; later records are passed to the listener.

        Raises:
            ConfigException: the topic has more than one partition, or is not compacted alone.
            JavaException: see `TopicLog.start`.
        """
        topic = self._log.topic
        try:
            yield from self._log.start()
        except JavaException as exception:
            if exception.name != UNSUPPORTED_VERSION:
                raise
            raise ConnectException(
                "Enabling exactly-once support for source connectors requires a Kafka broker "
                "version that allows admin clients to read consumer offsets. Please either disable "
                "the worker's exactly-once support for source connectors, or use a newer Kafka "
                "broker version.",
                exception.name,
            ) from exception
        count = self._log.partition_count
        if count > 1:
            raise ConfigException(
                f"Topic '{topic.name}' supplied via the '{topic.setting}' property is required to "
                "have a single partition in order to guarantee consistency of connector "
                f"configurations, but found {count} partitions."
            )
        self._table.is_started = True

    def stop(self) -> Blocking[None]:
        """Give up the write privilege, and end the reader."""
        self._relinquish_write_privileges()
        yield from self._log.stop()

    # -- reading ---------------------------------------------------------------------------

    def snapshot(self) -> ClusterConfigState:
        """Return the state read so far."""
        return self._table.snapshot()

    def contains(self, connector: str) -> bool:
        """Whether a connector is configured, as far as was read."""
        return self._table.contains(connector)

    def refresh(self, timeout_ms: int) -> Blocking[None]:
        """Read to the end of the topic.

        Raises:
            TimeoutException: it takes longer than `timeout_ms`.
            ConnectException: reading fails.
        """
        try:
            yield from self._log.await_end(timeout_ms)
        except ExecutionException as exception:
            raise ConnectException(
                "Error trying to read to end of config log", exception.cause
            ) from exception

    # -- writing ---------------------------------------------------------------------------

    def claim_write_privileges(self) -> Blocking[None]:
        """Become the only worker that may write the leader's records, if there is fencing.

        Raises:
            ConnectException: the fencible producer could not be made.
        """
        transactional_id = self._transactional_id
        if transactional_id is None or self._has_privileges:
            return
        pending = self._outbox.ask(partial(InitTransactions, transactional_id=transactional_id))
        self._has_privileges = True
        yield Wait(pending)
        if pending.error is not None:
            self._relinquish_write_privileges()
            raise ConnectException(
                "Failed to create and initialize fencable producer for config topic", pending.error
            )

    def put_connector_config(
        self, connector: str, properties: Properties, target_state: TargetState | None = None
    ) -> Blocking[None]:
        """Write a connector's configuration, preceded by its target state if one is given.

        Raises:
            PrivilegedWriteException: the fencible producer failed; claim the privilege anew.
            ConnectException: it was not written and read back within 30 s.
        """
        records: list[tuple[str, bytes | None]] = []
        if target_state is not None:
            records.append((target_state_key(connector), target_state_value(target_state)))
        records.append((connector_key(connector), properties_value(properties)))
        yield from self._write_and_read(records, "Error writing connector configuration to Kafka")

    def remove_connector_config(self, connector: str) -> Blocking[None]:
        """Write tombstones of a connector's configuration and target state, not of its tasks.

        Raises:
            PrivilegedWriteException: the fencible producer failed.
            ConnectException: it was not written and read back within 30 s.
        """
        records = ((connector_key(connector), None), (target_state_key(connector), None))
        yield from self._write_and_read(
            records, "Error removing connector configuration from Kafka"
        )

    def put_task_configs(self, connector: str, configs: Sequence[Properties]) -> Blocking[None]:
        """Write a connector's task configurations and then commit them, in 30 s together.

        The commit is written once the tasks have been read back.

        Raises:
            PrivilegedWriteException: the fencible producer failed.
            ConnectException: it was not all written and read back in time.
        """
        timer = _Timer(self._outbox)
        failure = "Error writing root configuration to Kafka"
        with _wrapped(failure):
            yield from self._log.await_end(timer.remaining_ms)
            timer.update()
        records = [
            (task_key(ConnectorTaskId(connector, index)), properties_value(config))
            for index, config in enumerate(configs)
        ]
        with _wrapped("Error writing task configurations to Kafka"):
            yield from self._send_privileged(records, timer)
        with _wrapped(failure):
            if records:
                yield from self._log.await_end(timer.remaining_ms)
                timer.update()
            commit = ((commit_tasks_key(connector), commit_value(len(records))),)
            yield from self._send_privileged(commit, timer)
            yield from self._log.await_end(timer.remaining_ms)

    def put_target_state(self, connector: str, state: TargetState) -> Blocking[None]:
        """Write a connector's target state. Any worker may; it is not read back.

        Raises:
            ConnectException: it was not written within 30 s.
        """
        yield from self._write(
            target_state_key(connector),
            target_state_value(state),
            "Error writing target state to Kafka",
        )

    def put_task_count_record(self, connector: str, task_count: int) -> Blocking[None]:
        """Write how many tasks of a connector may have to be fenced before the next are started.

        Raises:
            PrivilegedWriteException: the fencible producer failed.
            ConnectException: it was not written and read back within 30 s.
        """
        record = (task_count_record_key(connector), task_count_record_value(task_count))
        yield from self._write_and_read((record,), "Error writing task count record to Kafka")

    def put_session_key(self, key: SessionKey) -> Blocking[None]:
        """Write a new key for signatures.

        Raises:
            PrivilegedWriteException: the fencible producer failed.
            ConnectException: it was not written and read back within 30 s.
        """
        yield from self._write_and_read(
            ((SESSION_KEY_KEY, session_key_value(key)),), "Error writing session key to Kafka"
        )

    def put_restart_request(self, request: RestartRequest) -> Blocking[None]:
        """Write that a connector is to be restarted.

        Raises:
            PrivilegedWriteException: the fencible producer failed.
            ConnectException: it was not written and read back within 30 s.
        """
        yield from self._write_and_read(
            ((restart_key(request.connector), restart_value(request)),),
            f"Error writing {_as_text(request)} to Kafka",
        )

    def put_logger_level(self, namespace: str, level: str) -> Blocking[None]:
        """Write a log level for all workers. Any worker may; it is not read back.

        Raises:
            ConnectException: it was not written within 30 s.
        """
        yield from self._write(
            logger_cluster_key(namespace),
            logger_level_value(level),
            "Error writing logger level to Kafka",
        )

    def _write(self, key: str, value: bytes, failure: str) -> Blocking[None]:
        with _wrapped(failure):
            pending = self._log.send(key.encode(), value)
            yield from await_result(pending, self._outbox, READ_WRITE_TOTAL_TIMEOUT_MS)

    def _write_and_read(self, records: _Records, failure: str) -> Blocking[None]:
        timer = _Timer(self._outbox)
        with _wrapped(failure):
            yield from self._send_privileged(records, timer)
            yield from self._log.await_end(timer.remaining_ms)

    def _send_privileged(self, records: _Records, timer: "_Timer") -> Blocking[None]:
        if self._transactional_id is None:
            pendings = [self._log.send(key.encode(), value) for key, value in records]
            timer.update()
            for pending in pendings:
                yield from await_result(pending, self._outbox, timer.remaining_ms)
                timer.update()
            return
        if not self._has_privileges:
            raise ClientException(
                "IllegalStateException",
                "Cannot produce to config topic without claiming write privileges first",
            )
        yield from self._send_in_transaction(self._transactional_id, records)
        timer.update()

    def _send_in_transaction(self, transactional_id: str, records: _Records) -> Blocking[None]:
        topic = self._log.topic.name
        encoded = tuple((key.encode(), value) for key, value in records)
        pending = self._outbox.ask(
            lambda token: ProduceInTransaction(
                token=token, transactional_id=transactional_id, topic=topic, records=encoded
            )
        )
        yield Wait(pending)
        if pending.error is not None:
            self._relinquish_write_privileges()
            raise PrivilegedWriteException(
                "Failed to perform fencable send to config topic", pending.error
            )

    def _relinquish_write_privileges(self) -> None:
        if self._has_privileges and self._transactional_id is not None:
            self._outbox.tell(CloseProducer(self._transactional_id))
        self._has_privileges = False


class _Timer:
    """Java's Timer: the time left for a call, as of its last update."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._deadline_ms = outbox.now_ms + READ_WRITE_TOTAL_TIMEOUT_MS
        self.remaining_ms = READ_WRITE_TOTAL_TIMEOUT_MS

    def update(self) -> None:
        """Look at the clock."""
        self.remaining_ms = max(0, self._deadline_ms - self._outbox.now_ms)


@contextmanager
def _wrapped(failure: str) -> Iterator[None]:
    """Turn the exceptions of waiting for a result into a ConnectException."""
    try:
        yield
    except (ExecutionException, TimeoutException) as exception:
        raise ConnectException(failure, exception.cause or exception.name) from exception


def _as_text(request: RestartRequest) -> str:
    """Format a restart request as Java does."""
    only_failed = str(request.only_failed).lower()
    include_tasks = str(request.include_tasks).lower()
    return (
        f"restart request for {{connectorName='{request.connector}', onlyFailed={only_failed}, "
        f"includeTasks={include_tasks}}}"
    )
