"""Which kind of client a group, a member or a file of settings belongs to, and what it can set.

The only place that decides it: whatever advises a setting asks `refusal` first.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from coordinator_sim.clients.config import ConnectProtocolCompatibility
from coordinator_sim.trace.events import TraceEvent

STREAMS_PROTOCOL: Final = "stream"
"""Protocol name of Kafka Streams. Source: StreamsPartitionAssignor.name."""
_CONNECT_PROTOCOLS: Final = frozenset(each.protocol_name for each in ConnectProtocolCompatibility)
_CONNECT_TYPE: Final = "connect"
_UUID: Final = r"(-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?"
_STREAM_THREAD: Final = re.compile(rf".*-StreamThread-\d+-consumer{_UUID}")
_WORKER: Final = re.compile(rf"connect-(\d+|.*:\d+){_UUID}")
_SINK_TASK: Final = re.compile(rf"connector-consumer-.*-\d+{_UUID}")


class ClientKind(StrEnum):
    """What the members of a group are."""

    CONSUMER = "consumer"
    """Plain consumers."""
    STREAMS = "streams"
    """Stream threads of a Kafka Streams application."""
    CONNECT = "connect"
    """Workers of a Connect cluster."""
    SINK = "sink"
    """Consumers of the tasks of one sink connector."""


_BY_ID: Final = {
    ClientKind.STREAMS: _STREAM_THREAD,
    ClientKind.CONNECT: _WORKER,
    ClientKind.SINK: _SINK_TASK,
}
"""Client ids and member ids of each kind, where nobody chose others.

Source: kafka 4.3, ClientUtils.consumerClientId of Streams, DistributedHerder (`connect-` and a
number, since 3.7 `connect-` and the worker's address) and Worker.baseConsumerConfigs.
"""
_WORKER_SETTINGS: Final = (
    *("config.storage.topic", "offset.storage.topic", "status.storage.topic"),
    *("connect.protocol", "scheduled.rebalance.max.delay.ms"),
    *("worker.sync.timeout.ms", "worker.unsync.backoff.ms"),
)
_STREAMS_SETTINGS: Final = (
    *("application.id", "application.server", "num.stream.threads", "num.standby.replicas"),
    *("processing.guarantee", "state.dir", "topology.optimization"),
)
_CLUSTER: Final = "a Connect cluster"
_APPLICATION: Final = "Kafka Streams"
STREAMS_WAY: Final = (
    "group.protocol=streams (KIP-1071), with brokers and clients of 4.2 and the feature "
    "streams.version=1"
)
"""How Kafka Streams gets a protocol in which the broker assigns."""
_REFUSALS: Final[dict[ClientKind, dict[str, str]]] = {
    ClientKind.CONNECT: {
        "group.instance.id": f"is no setting of {_CLUSTER}: workers are never static",
        "partition.assignment.strategy": f"is no setting of {_CLUSTER}",
        "group.protocol": f"is no setting of {_CLUSTER}, which never converts",
        "group.remote.assignor": f"is no setting of {_CLUSTER}, which never converts",
        "max.poll.interval.ms": f"is no setting of {_CLUSTER}: rebalance.timeout.ms is",
    },
    ClientKind.STREAMS: {
        "partition.assignment.strategy": f"is no setting of {_APPLICATION}, which brings its own",
        "group.protocol": f"=consumer is not for {_APPLICATION}: its way is {STREAMS_WAY}",
        "group.remote.assignor": f"is not for {_APPLICATION}: its way is {STREAMS_WAY}",
    },
    ClientKind.SINK: {
        "group.instance.id": "is not for sink tasks: all would have this one name, and fence each "
        "other",
    },
}
"""By kind and setting, why members of the kind cannot have it.

Source: kafka 4.3, StreamsConfig (GROUP_PROTOCOL_CONFIG and
NON_CONFIGURABLE_CONSUMER_DEFAULT_CONFIGS), DistributedConfig.
"""
_OF_CONNECT: Final = frozenset({"connect.protocol", "scheduled.rebalance.max.delay.ms"})


def refusal(kind: ClientKind, setting: str) -> str | None:
    """Return why members of a kind cannot have a setting, a clause; None where they can."""
    if setting in _OF_CONNECT and kind is not ClientKind.CONNECT:
        return f"{setting} is a setting of {_CLUSTER} alone"
    why = _REFUSALS.get(kind, {}).get(setting)
    return None if why is None else f"{setting}{'' if why[0] == '=' else ' '}{why}"


def kind_of_id(name: str) -> ClientKind | None:
    """Return the kind that a client id or member id tells; None for a name of the user's own."""
    return next((kind for kind, form in _BY_ID.items() if form.fullmatch(name)), None)


def kind_of_lines(lines: Iterable[TraceEvent]) -> ClientKind:
    """Return the kind of a group's members from its lines.

    The protocol tells it where a line has one. Otherwise the first client id or member id does
    that has a form of Kafka's own. What nothing tells is `CONSUMER`.
    """
    names: dict[str, None] = {}
    is_consumer = False
    for line in lines:
        is_consumer = is_consumer or line.protocol_type == "consumer"
        if line.protocol_type == _CONNECT_TYPE:
            return ClientKind.CONNECT
        if line.protocol_name in _CONNECT_PROTOCOLS and not is_consumer:
            return ClientKind.CONNECT
        if line.protocol_name == STREAMS_PROTOCOL:
            return ClientKind.STREAMS
        names[line.client_id or ""] = names[line.member_id or ""] = None
        names[line.leader_id or ""] = None
    told = (kind for kind in map(kind_of_id, names) if kind is not None)
    return next(
        (kind for kind in told if kind is not ClientKind.CONNECT or not is_consumer),
        ClientKind.CONSUMER,
    )


def kind_of_settings(settings: Mapping[str, str]) -> ClientKind:
    """Return whose settings they are, by names that no other client has."""
    if any(name in settings for name in _WORKER_SETTINGS):
        return ClientKind.CONNECT
    if any(name in settings for name in _STREAMS_SETTINGS):
        return ClientKind.STREAMS
    return ClientKind.CONSUMER
