"""How a herder reads its config topic to the end, and writes to it as the leader.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, refreshConfigSnapshot,
readConfigToEnd, backoff, writeToConfigTopicAsLeader, writeTaskConfigs.
"""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.clients.config import ConnectProtocolCompatibility
from coordinator_sim.connect.effects import TargetState
from coordinator_sim.connect.exceptions import (
    ConnectException,
    PrivilegedWriteException,
    TimeoutException,
)
from coordinator_sim.connect.herding.herder_state import BACKOFF_RETRIES, HerderState
from coordinator_sim.connect.herding.refusals import BadRequestException
from coordinator_sim.connect.thread import Blocking

CONFIG_TOPIC_WRITE_PRIVILEGES_BACKOFF_MS: Final = 250
"""DistributedHerder.CONFIG_TOPIC_WRITE_PRIVILEGES_BACKOFF_MS."""


def read_config_to_end(herder: HerderState) -> Blocking[bool]:
    """Read to the end within `worker.sync.timeout.ms`; else leave the group and back off."""
    if (yield from refresh_config_snapshot(herder)):
        herder.backoff_retries = BACKOFF_RETRIES
        return True
    herder.member.maybe_leave_group("taking too long to read the log")
    yield from backoff(herder, herder.config.member.worker_unsync_backoff_ms)
    return False


def refresh_config_snapshot(herder: HerderState, timeout_ms: int | None = None) -> Blocking[bool]:
    """Read the config topic to its end and take a snapshot; return whether the time sufficed.

    Args:
        herder: The herder whose snapshot is refreshed.
        timeout_ms: Time limit, `worker.sync.timeout.ms` by default.
    """
    limit_ms = herder.config.member.worker_sync_timeout_ms if timeout_ms is None else timeout_ms
    with herder.in_stage("reading to the end of the config topic"):
        try:
            yield from herder.config_store.refresh(limit_ms)
        except TimeoutException:
            herder.can_read_configs = False
            return False
        herder.config_state = herder.config_store.snapshot()
        return True


def backoff(herder: HerderState, for_ms: int) -> Blocking[None]:
    """Sleep before another try; after five tries, stop all work instead.

    QUIRK: only the eager protocol sleeps as long as asked. The others sleep longer from try to try,
    by fractions of `scheduled.rebalance.max.delay.ms`, whatever the reason is.
    """
    if herder.protocol_version == ConnectProtocolCompatibility.EAGER:
        with herder.in_stage(f"sleeping for a backoff duration of {for_ms}ms"):
            yield from herder.sleep(for_ms)
        return
    if herder.backoff_retries > 0:
        delay_ms = herder.config.member.scheduled_rebalance_max_delay_ms
        fraction_ms = delay_ms // 10 // herder.backoff_retries
        with herder.in_stage(f"sleeping for a backoff duration of {fraction_ms}ms"):
            yield from herder.sleep(fraction_ms)
        herder.backoff_retries -= 1
        return
    running = herder.running_assignment
    yield from herder.member.revoke_assignment(tuple(running.connectors), tuple(running.tasks))
    herder.backoff_retries = BACKOFF_RETRIES


def write_to_config_topic_as_leader(
    herder: HerderState, description: str, write: Blocking[None]
) -> Blocking[None]:
    """Run a write that only the leader may do.

    Args:
        herder: The leader.
        description: A phrase without a subject, such as "writing a new session key".
        write: The call of the store's method, not yet begun.

    Raises:
        ConnectException: the worker's privilege is lost; it is claimed anew in a later tick if the
            worker still leads then.
        JavaException: the write failed otherwise.
    """
    with herder.in_stage(description):
        try:
            yield from write
        except PrivilegedWriteException as fenced:
            herder.fenced_from_config_topic = True
            raise ConnectException(
                "Failed to write to config topic; this may be due to a transient error and the "
                "request can be safely retried",
                fenced.name,
            ) from fenced


def write_task_configs(
    herder: HerderState, connector: str, configs: Sequence[dict[str, str]]
) -> Blocking[None]:
    """Write the task configurations of a connector.

    Raises:
        BadRequestException: the connector is stopped, and the list of tasks is not empty.
        JavaException: the write failed.
    """
    if configs and herder.config_state.target_state(connector) is TargetState.STOPPED:
        raise BadRequestException(
            f"Cannot submit non-empty set of task configs for stopped connector {connector}"
        )
    yield from write_to_config_topic_as_leader(
        herder,
        f"writing {len(configs)} task configs for connector {connector} to the config topic",
        herder.config_store.put_task_configs(connector, configs),
    )
