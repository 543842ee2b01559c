"""Settings of clients by the names of Kafka's Java clients, as librdkafka takes them.

Most names are the same in both. Others are renamed, taken by the clients around librdkafka, or left
out, since they mean nothing there; a name that neither knows is refused by librdkafka. Where a
broker or a reader of records would see another default, it is Java's.

DEVIATION: a producer is idempotent only where `enable.idempotence` says so. librdkafka takes half a
second for its first record otherwise, which a bench would show as latency.

Source: names and defaults of ProducerConfig, ConsumerConfig and AdminClientConfig of kafka-clients
4.3.1; librdkafka 2.16, CONFIGURATION.md.
"""

import re
from typing import Final

from msgspec import Struct

from coordinator_sim.trogdor.workloads.clients import ClientFailed, Settings

Value = str | int | bool

_RENAMED: Final = {
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.truststore.location": "ssl.ca.location",
}
_TAKEN: Final = ("buffer.memory", "default.api.timeout.ms", "max.block.ms", "max.poll.records")
"""Settings that the clients around librdkafka keep, as far as they are theirs."""
_LEFT_OUT: Final = frozenset(
    {
        "bootstrap.controllers",
        "config.providers",
        "exclude.internal.topics",
        "interceptor.classes",
        "internal.throw.on.fetch.stable.offset.unsupported",
        "key.deserializer",
        "key.serializer",
        "metadata.max.idle.ms",
        "metric.reporters",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "sasl.client.callback.handler.class",
        "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.scope.claim.name",
        "security.providers",
        "share.acknowledgement.mode",
        "share.acquire.mode",
        "socket.connection.setup.timeout.max.ms",
        "ssl.enabled.protocols",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.keystore.type",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "transaction.two.phase.commit.enable",
        "value.deserializer",
        "value.serializer",
    }
)
_LEFT_OUT_PREFIXES: Final = (
    "metrics.",
    "sasl.kerberos.ticket.renew.",
    "sasl.login.",
    "sasl.oauthbearer.expected.",
    "sasl.oauthbearer.jwks.",
    "sasl.oauthbearer.jwt.",
)
_ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
_JAAS_PASSWORD: Final = re.compile(r"\.(Plain|Scram)LoginModule\s")
_JAAS_OPTION: Final = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_KBYTE: Final = 1024
_DELIVERY_TIMEOUT_MS: Final = 120_000
_LEAST_FETCH_BYTES: Final = 1_000
_MESSAGE_BYTES: Final = 1_000_000
"""Default of librdkafka's `message.max.bytes`, below which it lets no fetch be."""
_QUIET: Final = {"log_level": 0}
"""What goes wrong comes to `error_cb`; nothing is written to standard error besides."""


class Native(Struct, frozen=True):
    """Settings for librdkafka.

    Args:
        settings: By librdkafka's names.
        left_out: Names that mean nothing to it.
    """

    settings: dict[str, Value]
    left_out: tuple[str, ...]


def whole_number(settings: Settings, name: str, default: int) -> int:
    """A setting that is a whole number.

    Raises:
        ClientFailed: it is none.
    """
    value = settings.get(name, default)
    try:
        return int(value)
    except ValueError:
        raise ClientFailed(f"{name} is {value!r}: give a whole number") from None


def native_of_consumer(settings: Settings, spare_group: str) -> Native:
    """The settings of a consumer.

    Args:
        settings: By Java's names.
        spare_group: `group.id` where none is given, for librdkafka wants one; nothing is committed
            then.

    Raises:
        ClientFailed: a number is none.
    """
    found = _translated(settings)
    native = found.settings
    if "group.id" not in native:
        native |= {"group.id": spare_group, "enable.auto.commit": False}
    java: dict[str, Value] = {
        "isolation.level": "read_uncommitted",
        "allow.auto.create.topics": True,
    }
    for name, value in java.items():
        native.setdefault(name, value)
    _rename_timeout(native)
    if native.get("auto.offset.reset") == "none":
        native["auto.offset.reset"] = "error"
    if "partition.assignment.strategy" in native:
        given = str(native["partition.assignment.strategy"]).split(",")
        names = (each.strip().rpartition(".")[2] for each in given)
        native["partition.assignment.strategy"] = ",".join(
            _ASSIGNORS.get(each, each) for each in names
        )
    fetch_bytes = whole_number(settings, "fetch.max.bytes", _MESSAGE_BYTES)
    if fetch_bytes < _MESSAGE_BYTES:
        # librdkafka lets no fetch be smaller than a message, and bounds messages from below.
        least = max(fetch_bytes, _LEAST_FETCH_BYTES)
        native |= {"fetch.max.bytes": least, "message.max.bytes": least}
    return found


def native_of_producer(settings: Settings) -> Native:
    """The settings of a producer.

    Raises:
        ClientFailed: a number is none.
    """
    found = _translated(settings)
    native = found.settings
    native.setdefault("partitioner", "murmur2_random")
    if "buffer.memory" in settings:
        size = whole_number(settings, "buffer.memory", 0)
        native["queue.buffering.max.kbytes"] = max(1, -(-size // _KBYTE))
    if "transactional.id" not in native:
        native.setdefault("delivery.timeout.ms", _DELIVERY_TIMEOUT_MS)
    return found


def native_of_admin(settings: Settings) -> Native:
    """The settings of an admin client."""
    found = _translated(settings)
    _rename_timeout(found.settings)
    return found


def _translated(settings: Settings) -> Native:
    """Settings under librdkafka's names; the later of two that have one name wins."""
    native: dict[str, Value] = dict(_QUIET)
    left_out = []
    for name, value in settings.items():
        if name in _LEFT_OUT or name.startswith(_LEFT_OUT_PREFIXES):
            left_out.append(name)
        elif name == "sasl.jaas.config":
            native |= _login(str(value))
        elif name not in _TAKEN:
            native[_RENAMED.get(name, name)] = value
    for name in ("socket.receive.buffer.bytes", "socket.send.buffer.bytes"):
        if str(native.get(name)) == "-1":
            # The system's own size is -1 in Java and 0 in librdkafka.
            native[name] = 0
    return Native(native, tuple(left_out))


def _login(jaas: str) -> dict[str, Value]:
    """User and password of a JAAS configuration; librdkafka refuses what has neither."""
    if not _JAAS_PASSWORD.search(jaas):
        return {"sasl.jaas.config": jaas}
    options = {name: re.sub(r"\\(.)", r"\1", text) for name, text in _JAAS_OPTION.findall(jaas)}
    return {f"sasl.{name}": text for name, text in options.items()}


def _rename_timeout(native: dict[str, Value]) -> None:
    """Give `request.timeout.ms` the name that it has in clients that do not produce."""
    if "request.timeout.ms" in native:
        native["socket.timeout.ms"] = native.pop("request.timeout.ms")
