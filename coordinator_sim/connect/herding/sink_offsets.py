"""Reading and changing the offsets of a sink by request: those of its consumer group.

Source: kafka trunk, connect/runtime/.../Worker.java, sinkConnectorOffsets,
modifySinkConnectorOffsets, alterSinkConnectorOffsets, resetSinkConnectorOffsets,
completeModifyOffsetsCallback; util/SinkUtils.java.
"""

import re
from collections.abc import Mapping
from typing import Final, cast

from coordinator_sim.connect.effects import (
    AlterGroupOffsets,
    DeleteGroup,
    DeleteGroupOffsets,
    ListGroupOffsets,
)
from coordinator_sim.connect.exceptions import ConnectException
from coordinator_sim.connect.herding import requests
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.herding.refusals import BadRequestException
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, topic_partition_hash
from coordinator_sim.kafka.resources import TopicPartition

TOPIC_KEY: Final = "kafka_topic"
PARTITION_KEY: Final = "kafka_partition"
OFFSET_KEY: Final = "kafka_offset"
_TIMEOUT_MS: Final = 90_000
"""RestServer.DEFAULT_REST_REQUEST_TIMEOUT_MS."""
_NOT_FOUND: Final = "GroupIdNotFoundException"
_HAS_MEMBERS: Final = (
    "UnknownMemberIdException",
    "GroupSubscribedToTopicException",
    "GroupNotEmptyException",
)
"""Errors of a group that still has consuming members."""


def read_sink_offsets(herder: HerderState, connector: str) -> Blocking[requests.ConnectorOffsets]:
    """Return the offsets of a sink's consumer group.

    Raises:
        ConnectException: the offsets cannot be read.
    """
    offsets = yield from _list(
        herder,
        connector,
        f"Failed to retrieve consumer group offsets for sink connector {connector}",
    )
    return requests.ConnectorOffsets(
        tuple(
            requests.ConnectorOffset(
                {TOPIC_KEY: partition.topic, PARTITION_KEY: partition.partition},
                {OFFSET_KEY: offsets[partition]},
            )
            for partition in java_hash_order(offsets, hash_of=topic_partition_hash)
        )
    )


def write_sink_offsets(
    herder: HerderState, request: requests.AlterOffsets | requests.ResetOffsets
) -> Blocking[requests.Message]:
    """Alter or reset the offsets of a sink's consumer group.

    Raises:
        BadRequestException: the offsets are malformed.
        ConnectException: the connector's class or the group refuses the change.
    """
    connector = request.connector
    if isinstance(request, requests.AlterOffsets):
        wanted = parse_sink_offsets(request.offsets)
    else:
        found = yield from _list(
            herder,
            connector,
            f"Failed to list offsets prior to resetting offsets for sink connector {connector}",
        )
        wanted = dict.fromkeys(found)
    vouched = herder.plugins.alter_offsets(transformed_config(herder, connector), ())
    if isinstance(vouched, requests.PluginFailure):
        raise ConnectException(vouched.trace)
    if isinstance(request, requests.AlterOffsets):
        yield from _alter(herder, connector, wanted)
        return modified_message("altered", vouched=vouched)
    group_id = _group_id(herder, connector)
    asked = herder.outbox.ask(lambda token: DeleteGroup(token, group_id))
    # A group that does not exist has no offsets either.
    yield from _changed(herder, connector, "reset", asked, but_for=_NOT_FOUND)
    return modified_message("reset", vouched=vouched)


def modified_message(done: str, *, vouched: bool) -> requests.Message:
    """Return the answer to a request that changed offsets.

    Args:
        done: `altered` or `reset`.
        vouched: Whether the connector's class confirmed that it has done its part.
    """
    if vouched:
        return requests.Message(f"The offsets for this connector have been {done} successfully")
    return requests.Message(
        f"The Connect framework-managed offsets for this connector have been {done} successfully. "
        "However, if this connector manages offsets externally, they will need to be manually "
        f"{done} in the system that the connector uses."
    )


def parse_sink_offsets(
    offsets: tuple[requests.ConnectorOffset, ...],
) -> dict[TopicPartition, int | None]:
    """Return a request's offsets by partition; None where an offset is to be deleted.

    Raises:
        BadRequestException: the offsets are malformed.

    Source: SinkUtils.parseSinkConnectorOffsets.
    """
    return {_partition(each.partition): _offset(each.offset) for each in offsets}


def _partition(partition: Mapping[str, object]) -> TopicPartition:
    if TOPIC_KEY not in partition or PARTITION_KEY not in partition:
        raise BadRequestException(
            "The partition for a sink connector offset must contain the keys "
            f"'{TOPIC_KEY}' and '{PARTITION_KEY}'"
        )
    topic, number = partition[TOPIC_KEY], partition[PARTITION_KEY]
    if topic is None:
        raise BadRequestException("Kafka topic names must be valid strings and may not be null")
    if number is None:
        raise BadRequestException("Kafka partitions must be valid numbers and may not be null")
    if _is_number(number):
        return TopicPartition(str(topic), int(str(number)))
    raise BadRequestException(
        "Failed to parse the following Kafka partition value in the provided offsets: "
        f"'{number}'. Partition values for sink connectors need to be integers."
    )


def _offset(offset: Mapping[str, object] | None) -> int | None:
    if offset is None:
        return None
    if OFFSET_KEY not in offset:
        raise BadRequestException(
            "The offset for a sink connector should either be null or contain "
            f"the key '{OFFSET_KEY}'"
        )
    number = offset[OFFSET_KEY]
    if _is_number(number):
        return int(str(number))
    raise BadRequestException(
        "Failed to parse the following Kafka offset value in the provided offsets: "
        f"'{number}'. Offset values for sink connectors need to be integers."
    )


def _is_number(value: object) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,18}", str(value)) is not None


def _alter(
    herder: HerderState, connector: str, wanted: Mapping[TopicPartition, int | None]
) -> Blocking[None]:
    group_id = _group_id(herder, connector)
    altered = {partition: offset for partition, offset in wanted.items() if offset is not None}
    deleted = tuple(partition for partition, offset in wanted.items() if offset is None)
    if altered:
        asked = herder.outbox.ask(lambda token: AlterGroupOffsets(token, group_id, altered))
        yield from _changed(herder, connector, "alter", asked)
    if deleted:
        asked = herder.outbox.ask(lambda token: DeleteGroupOffsets(token, group_id, deleted))
        yield from _changed(herder, connector, "alter", asked)


def _changed(
    herder: HerderState,
    connector: str,
    verb: str,
    asked: Pending[object],
    *,
    but_for: str | None = None,
) -> Blocking[None]:
    """Wait for a change of the group; the error named `but_for` counts as success."""
    yield Wait(asked, until_ms=herder.now_ms + _TIMEOUT_MS)
    if asked.done and asked.error in (None, but_for):
        return
    message = f"Failed to {verb} consumer group offsets for connector {connector}"
    if asked.error in _HAS_MEMBERS:
        message += (
            " either because its tasks haven't stopped completely yet or the connector was resumed "
            f"before the request to {verb} its offsets could be successfully completed. If the "
            "connector is in a stopped state, this operation can be safely retried. If it doesn't "
            "eventually succeed, the Connect cluster may need to be restarted to get rid of the "
            "zombie sink tasks."
        )
    raise ConnectException(message, asked.error or "TimeoutException")


def _list(herder: HerderState, connector: str, failure: str) -> Blocking[dict[TopicPartition, int]]:
    group_id = _group_id(herder, connector)
    asked = herder.outbox.ask(lambda token: ListGroupOffsets(token, group_id))
    yield Wait(asked, until_ms=herder.now_ms + _TIMEOUT_MS)
    if not asked.done or asked.error is not None:
        raise ConnectException(failure, asked.error or "TimeoutException")
    return cast("dict[TopicPartition, int]", asked.result())


def _group_id(herder: HerderState, connector: str) -> str:
    """Return the consumer group of a sink: its own setting, the worker's, or the default name."""
    own = transformed_config(herder, connector).get("consumer.override.group.id")
    return own or herder.config.properties.get("consumer.group.id") or f"connect-{connector}"


def transformed_config(herder: HerderState, connector: str) -> dict[str, str]:
    """Return a connector's settings with the values that they refer to; none without the connector.

    Raises:
        ConfigException: a provider cannot read a path.
    """
    return herder.plugins.transformed(herder.config_state.connector_config(connector) or {})
