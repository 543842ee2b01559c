"""What is wrong with the settings of a Kafka Streams application: what causes rebalances, or fails.

Values are texts, as in the properties of an application. Its main consumers read a setting of
consumers with the prefix `main.consumer.`, else with `consumer.`, else with none.

Source: kafka 4.3, StreamsConfig: getMainConsumerConfigs, verifyStreamsProtocolCompatibility,
verifyEOSTransactionTimeoutCompatibility; tried with the jar of that release.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from msgspec.structs import replace

from coordinator_sim.clients.client_kind import ClientKind, refusal
from coordinator_sim.clients.settings_advice import (
    CONSUMER_NAMES,
    Advice,
    Weight,
    first_of_each,
    membership_advice,
    refused_values,
    static_session_advice,
)
from coordinator_sim.kafka.java_numbers import java_int

STREAMS_NAMES: Final = frozenset(
    {
        *("acceptable.recovery.lag", "allow.os.group.write.access", "application.id"),
        *("application.server", "buffered.records.per.partition", "built.in.metrics.version"),
        *("cache.max.bytes.buffering", "commit.interval.ms", "default.client.supplier"),
        *("default.deserialization.exception.handler", "default.dsl.store", "default.key.serde"),
        *("default.list.key.serde.inner", "default.list.key.serde.type"),
        *("default.list.value.serde.inner", "default.list.value.serde.type"),
        *("default.production.exception.handler", "default.timestamp.extractor"),
        *("default.value.serde", "deserialization.exception.handler", "dsl.store.format"),
        *("dsl.store.suppliers.class", "ensure.explicit.internal.resource.naming"),
        *("errors.dead.letter.queue.topic.name", "log.summary.interval.ms", "max.task.idle.ms"),
        *("max.warmup.replicas", "num.standby.replicas", "num.stream.threads", "poll.ms"),
        *("probing.rebalance.interval.ms", "processing.exception.handler"),
        *("processing.exception.handler.global.enabled", "processing.guarantee"),
        *("processor.wrapper.class", "production.exception.handler"),
        *("rack.aware.assignment.non_overlap_cost", "rack.aware.assignment.strategy"),
        *("rack.aware.assignment.tags", "rack.aware.assignment.traffic_cost"),
        *("repartition.purge.interval.ms", "replication.factor", "rocksdb.config.setter"),
        *("state.cleanup.delay.ms", "state.cleanup.dir.max.age.ms", "state.dir"),
        *("statestore.cache.max.bytes", "task.assignor.class", "task.timeout.ms"),
        *("topology.optimization", "upgrade.from", "window.size.ms"),
        *("windowed.inner.class.serde", "windowstore.changelog.additional.retention.ms"),
    }
)
"""Names of StreamsConfig 4.3 that no consumer has."""
_MAIN: Final = ("", "consumer.", "main.consumer.")
"""Prefixes of the main consumers' settings; the last one that has a name counts."""
_OTHERS: Final = ("restore.consumer.", "global.consumer.", "producer.", "admin.", "topic.")
_GUARANTEES: Final = ("at_least_once", "exactly_once_v2")
_PROTOCOLS: Final = ("classic", "streams")
_OVERRIDDEN: Final = {
    "partition.assignment.strategy": "does nothing: Kafka Streams brings its own assignor",
    "allow.auto.create.topics": "does nothing: Kafka Streams sets false",
    "group.id": "does nothing: application.id is the group",
}
_OF_BROKERS: Final = {
    "session.timeout.ms": "streams.session.timeout.ms",
    "heartbeat.interval.ms": "streams.heartbeat.interval.ms",
    "num.standby.replicas": "streams.num.standby.replicas",
}
"""What the brokers decide under group.protocol=streams, and the group's setting there."""
_TRANSACTION_TIMEOUT: Final = "producer.transaction.timeout.ms"
_TRANSACTION_MS: Final = 10_000
"""Default of Kafka Streams, of the producer's transaction.timeout.ms."""
_COMMIT_MS: Final = 100
"""Default of commit.interval.ms under exactly_once_v2."""
_NEAR: Final = 0.87
_NEAR_TO_OTHERS: Final = frozenset({"key.serializer", "value.serializer", "metadata.max.idle.ms"})
"""Names of producers' that are as close to one of consumers' as a misspelt one."""
_PROTOCOL: Final = "group.protocol"
_REMOTE: Final = "group.remote.assignor"


def advise_streams(settings: Mapping[str, str]) -> list[Advice]:
    """Return what should be changed, once a setting: errors first, then by the settings' names."""
    main, names = main_consumer(settings)
    found = [*_unknown(settings), *_refused(settings, main), *_overridden(settings, main)]
    found += refused_values(main)
    if _protocol(settings) == "streams":
        found += _streams_protocol(settings, main)
    elif not any(each.weight is Weight.ERROR for each in found):
        found += [*membership_advice(main), *_static(main)]
    return first_of_each(
        replace(each, setting=names.get(each.setting, each.setting)) for each in found
    )


def _protocol(settings: Mapping[str, str]) -> str:
    return settings.get(_PROTOCOL, _PROTOCOLS[0]).strip().lower()


def main_consumer(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the main consumers' settings by their own names, and the names as they are written."""
    main: dict[str, str] = {}
    names: dict[str, str] = {}
    for prefix in _MAIN:
        for name, value in settings.items():
            own = name.removeprefix(prefix)
            if name.startswith(prefix) and own in CONSUMER_NAMES and own != _PROTOCOL:
                main[own], names[own] = value, name
    return main, names


def _unknown(settings: Mapping[str, str]) -> Iterator[Advice]:
    """Names that are close to one of Kafka's; Streams passes others on to the user's classes."""
    known = STREAMS_NAMES | CONSUMER_NAMES | _NEAR_TO_OTHERS
    for name, value in settings.items():
        prefix = next((each for each in reversed(_MAIN) if name.startswith(each)), "")
        own = name.removeprefix(prefix)
        if own in known or name.startswith(_OTHERS):
            continue
        near = get_close_matches(own, known, n=1, cutoff=_NEAR)
        if near:
            what = "no setting of Kafka Streams or its consumers, which only pass it on"
            yield _warning(name, value, what, f"did you mean {prefix}{near[0]}?")


def _refused(settings: Mapping[str, str], main: Mapping[str, str]) -> Iterator[Advice]:
    fails = "the application does not start"
    protocol = _protocol(settings)
    if protocol not in _PROTOCOLS:
        why = f": {refusal(ClientKind.STREAMS, _PROTOCOL)}" if protocol == "consumer" else ""
        yield _error(_PROTOCOL, protocol, fails + why, f"set {' or '.join(_PROTOCOLS)}")
    guarantee = settings.get("processing.guarantee", _GUARANTEES[0]).strip()
    if guarantee not in _GUARANTEES:
        change = f"set {' or '.join(_GUARANTEES)}"
        yield _error("processing.guarantee", guarantee, fails, change)
    if main.get(_REMOTE):
        what = f"{fails}: {refusal(ClientKind.STREAMS, _REMOTE)}"
        yield _error(_REMOTE, main[_REMOTE], what, "leave it out")
    commit_ms = java_int(settings.get("commit.interval.ms", str(_COMMIT_MS)), bits=64)
    limit_ms = java_int(settings.get(_TRANSACTION_TIMEOUT, str(_TRANSACTION_MS)), bits=32)
    if guarantee == _GUARANTEES[1] and commit_ms is not None and commit_ms > (limit_ms or 0):
        what = f"{fails}: a transaction would outlast {_TRANSACTION_TIMEOUT}={limit_ms}"
        yield _error("commit.interval.ms", str(commit_ms), what, f"set {limit_ms} or less")


def _overridden(settings: Mapping[str, str], main: Mapping[str, str]) -> Iterator[Advice]:
    for name in (f"{prefix}{_PROTOCOL}" for prefix in _MAIN[1:]):
        if name in settings:
            yield _warning(name, settings[name], "does nothing here", f"set {_PROTOCOL} itself")
    for name in main.keys() & _OVERRIDDEN.keys():
        yield _warning(name, main[name], _OVERRIDDEN[name], "leave it out")
    if main.get("enable.auto.commit", "false").strip().lower() == "true":
        what = "does nothing: Kafka Streams commits by itself"
        yield _warning("enable.auto.commit", "true", what, "set commit.interval.ms")


def _streams_protocol(settings: Mapping[str, str], main: Mapping[str, str]) -> Iterator[Advice]:
    if main.get("group.instance.id"):
        what = "the application does not start: group.protocol=streams knows no static members"
        change = "leave it out, or set group.protocol=classic"
        yield _error("group.instance.id", main["group.instance.id"], what, change)
    for name, of_group in _OF_BROKERS.items():
        value = main.get(name, settings.get(name))
        if value is not None:
            what = "does nothing with group.protocol=streams: brokers decide it"
            change = f"set {of_group} for the group (kafka-configs.sh --entity-type groups)"
            yield _warning(name, value, what, change)


def _static(main: Mapping[str, str]) -> Iterator[Advice]:
    if main.get("group.instance.id"):
        yield from static_session_advice(main)
        return
    what = (
        "every restart rebalances the group twice: when its session is over, as Kafka Streams does "
        "not leave, and when it returns"
    )
    change = "give each instance a name that outlives its restarts, or set group.protocol=streams"
    yield _warning("group.instance.id", "(not set)", what, change)


def _warning(name: str, value: str, what: str, change: str) -> Advice:
    return Advice(weight=Weight.WARNING, setting=name, value=value, what=what, change=change)


def _error(name: str, value: str, what: str, change: str) -> Advice:
    return Advice(weight=Weight.ERROR, setting=name, value=value, what=what, change=change)
