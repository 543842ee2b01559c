"""Definitions of a distributed worker's settings: Kafka's names, kinds, defaults and bounds.

What follows from them together is in `worker_config`.

Source: kafka trunk, connect/runtime/.../WorkerConfig.java, distributed/DistributedConfig.java,
rest/RestServerConfig.java, TopicCreationConfig.java.
"""

from typing import Final

from coordinator_sim.clients.config import ConnectProtocolCompatibility
from coordinator_sim.connect.rest.signatures import MAC_ALGORITHMS
from coordinator_sim.connect.settings.config_def import (
    ConfigDef,
    ConfigInput,
    ConfigKey,
    NoDefault,
    Type,
    Validator,
    at_least,
    between,
    invalid,
    one_of,
)

_INT_MAX: Final = (1 << 31) - 1
_BROKER_DEFAULT: Final = -1
_URLS: Final = "ex: http://localhost:8080,https://localhost:8443."


def _positive_or_default(what: str) -> Validator:
    def validate(name: str, value: ConfigInput) -> str | None:
        if isinstance(value, int) and (value >= 1 or value == _BROKER_DEFAULT):
            return None
        return invalid(name, value, f"{what}, or -1 to use the broker's default")

    return validate


_partitions: Final = _positive_or_default("Number of partitions must be positive")
_replication: Final = _positive_or_default(
    "Replication factor must be positive and not larger than the number of brokers in the Kafka "
    "cluster"
)


def _connect_protocol(name: str, value: ConfigInput) -> str | None:
    modes = [mode.name for mode in ConnectProtocolCompatibility]
    if isinstance(value, str) and value.upper() in modes:
        return None
    return invalid(name, value, "Invalid Connect protocol compatibility")


def _mac_algorithm(name: str, value: ConfigInput) -> str | None:
    if value in MAC_ALGORITHMS:
        return None
    return invalid(
        name,
        value,
        "the algorithm is not supported by this JVM; the supported algorithms are: "
        f"[{', '.join(MAC_ALGORITHMS)}]",
    )


def _mac_algorithms(name: str, value: ConfigInput) -> str | None:
    if not isinstance(value, tuple) or not value:
        return invalid(
            name, value, "At least one signature verification algorithm must be provided"
        )
    return next((e for e in (_mac_algorithm(name, each) for each in value) if e is not None), None)


def _listeners(name: str, value: ConfigInput) -> str | None:  # noqa: ARG001 - Kafka's message does not name the setting
    if not isinstance(value, tuple) or not value:
        return f"Invalid value for listeners, at least one URL is expected, {_URLS}"
    if any(not item.strip() for item in value):
        return "Empty URL found when parsing listeners list."
    return None


def _admin_listeners(name: str, value: ConfigInput) -> str | None:  # noqa: ARG001 - as above
    if isinstance(value, tuple) and any(not item.strip() for item in value):
        return "Empty URL found when parsing admin.listeners list."
    return None


def _needed(name: str, kind: Type = Type.STRING) -> ConfigKey:
    return ConfigKey(name=name, type=kind, default=NoDefault.REQUIRED)


def _key(name: str, kind: Type, default: ConfigInput, *validators: Validator) -> ConfigKey:
    return ConfigKey(name=name, type=kind, default=default, validators=validators)


def _ms(name: str, default: int, *validators: Validator, kind: Type = Type.LONG) -> ConfigKey:
    return _key(name, kind, default, *(validators or (at_least(0),)))


_GROUP_KEYS: Final = (
    _needed("group.id"),
    _key("session.timeout.ms", Type.INT, 10_000),
    _key("rebalance.timeout.ms", Type.INT, 60_000),
    _key("heartbeat.interval.ms", Type.INT, 3_000),
    _key(
        "exactly.once.source.support",
        Type.STRING,
        "disabled",
        one_of("DISABLED", "PREPARING", "ENABLED", ignore_case=True),
    ),
    _key("worker.sync.timeout.ms", Type.INT, 3_000),
    _key("worker.unsync.backoff.ms", Type.INT, 300_000),
    _key("connect.protocol", Type.STRING, "sessioned", _connect_protocol),
    _ms("scheduled.rebalance.max.delay.ms", 300_000, between(0, _INT_MAX), kind=Type.INT),
    _ms("inter.worker.key.ttl.ms", 3_600_000, between(0, _INT_MAX), kind=Type.INT),
    _key("inter.worker.key.generation.algorithm", Type.STRING, "HmacSHA256", _mac_algorithm),
    _key("inter.worker.key.size", Type.INT, None),
    _key("inter.worker.signature.algorithm", Type.STRING, "HmacSHA256", _mac_algorithm),
    _key("inter.worker.verification.algorithms", Type.LIST, ("HmacSHA256",), _mac_algorithms),
)
_CLIENT_KEYS: Final = (
    _key("bootstrap.servers", Type.LIST, ("localhost:9092",)),
    _key(
        "client.dns.lookup",
        Type.STRING,
        "use_all_dns_ips",
        one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    _key("client.id", Type.STRING, ""),
    _ms("metadata.max.age.ms", 300_000),
    _key("send.buffer.bytes", Type.INT, 131_072, at_least(-1)),
    _key("receive.buffer.bytes", Type.INT, 32_768, at_least(-1)),
    _ms("reconnect.backoff.ms", 50),
    _ms("reconnect.backoff.max.ms", 1_000),
    _ms("socket.connection.setup.timeout.ms", 10_000),
    _ms("socket.connection.setup.timeout.max.ms", 30_000),
    _ms("retry.backoff.ms", 100),
    _ms("retry.backoff.max.ms", 1_000),
    _ms("request.timeout.ms", 40_000, kind=Type.INT),
    _key("connections.max.idle.ms", Type.LONG, 540_000),
    _key(
        "security.protocol",
        Type.STRING,
        "PLAINTEXT",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", ignore_case=True),
    ),
    _key(
        "metadata.recovery.strategy",
        Type.STRING,
        "none",
        one_of("NONE", "REBOOTSTRAP", ignore_case=True),
    ),
    _ms("metrics.sample.window.ms", 30_000),
    _key("metrics.num.samples", Type.INT, 2, at_least(1)),
    _key("metrics.recording.level", Type.STRING, "INFO", one_of("INFO", "DEBUG")),
    _key("metric.reporters", Type.LIST, ("org.apache.kafka.common.metrics.JmxReporter",)),
)
_TOPIC_KEYS: Final = (
    _needed("offset.storage.topic"),
    _key("offset.storage.partitions", Type.INT, 25, _partitions),
    _key("offset.storage.replication.factor", Type.SHORT, 3, _replication),
    _needed("config.storage.topic"),
    _key("config.storage.replication.factor", Type.SHORT, 3, _replication),
    _needed("status.storage.topic"),
    _key("status.storage.partitions", Type.INT, 5, _partitions),
    _key("status.storage.replication.factor", Type.SHORT, 3, _replication),
)
_WORK_KEYS: Final = (
    _needed("key.converter", Type.CLASS),
    _needed("value.converter", Type.CLASS),
    _key(
        "header.converter",
        Type.CLASS,
        "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    ),
    _key("task.shutdown.graceful.timeout.ms", Type.LONG, 5_000),
    _key("offset.flush.interval.ms", Type.LONG, 60_000),
    _key("offset.flush.timeout.ms", Type.LONG, 5_000),
    _key("plugin.path", Type.LIST, None),
    _key(
        "plugin.discovery",
        Type.STRING,
        "hybrid_warn",
        one_of("ONLY_SCAN", "HYBRID_WARN", "HYBRID_FAIL", "SERVICE_LOAD", ignore_case=True),
    ),
    _key("config.providers", Type.LIST, ()),
    _key("connector.client.config.override.policy", Type.STRING, "All"),
    _key("topic.creation.enable", Type.BOOLEAN, default=True),
    _key("topic.tracking.enable", Type.BOOLEAN, default=True),
    _key("topic.tracking.allow.reset", Type.BOOLEAN, default=True),
)
_REST_KEYS: Final = (
    _key("listeners", Type.LIST, ("http://:8083",), _listeners),
    _key("rest.advertised.host.name", Type.STRING, None),
    _key("rest.advertised.port", Type.INT, None),
    _key("rest.advertised.listener", Type.STRING, None),
    _key("access.control.allow.origin", Type.STRING, ""),
    _key("access.control.allow.methods", Type.STRING, ""),
    _key("response.http.headers.config", Type.STRING, ""),
    _key("rest.extension.classes", Type.LIST, ()),
    _key("admin.listeners", Type.LIST, None, _admin_listeners),
)

WORKER_CONFIG_DEF: Final = ConfigDef(
    (*_CLIENT_KEYS, *_WORK_KEYS, *_REST_KEYS, *_GROUP_KEYS, *_TOPIC_KEYS)
)
"""Every setting of a distributed worker but those of TLS and SASL, which are passed over."""
PASSED_ON_PREFIXES: Final = (
    "ssl.",
    "sasl.",
    "producer.",
    "consumer.",
    "admin.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "config.storage.",
    "offset.storage.",
    "status.storage.",
    "config.providers.",
    "listeners.https.",
    "metrics.context.",
)
"""Settings that others read; the worker itself does not know them one by one."""
