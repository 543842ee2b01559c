"""What is wrong with a consumer's settings: what causes rebalances, or what a client refuses.

Values are texts, as in a `client.properties`. Defaults and bounds are those of a
consumer of Kafka 4.x.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.java_numbers import java_int

CONSUMER_NAMES: Final = frozenset(
    {
        *("allow.auto.create.topics", "auto.commit.interval.ms", "auto.offset.reset"),
        *("bootstrap.servers", "check.crcs", "client.dns.lookup", "client.id", "client.rack"),
        *("config.providers", "connections.max.idle.ms", "default.api.timeout.ms"),
        *("enable.auto.commit", "enable.metrics.push", "exclude.internal.topics"),
        *("fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "group.id"),
        *("group.instance.id", "group.protocol", "group.remote.assignor", "heartbeat.interval.ms"),
        *("interceptor.classes", "internal.leave.group.on.close"),
        *("internal.throw.on.fetch.stable.offset.unsupported", "isolation.level"),
        *("key.deserializer", "max.partition.fetch.bytes", "max.poll.interval.ms"),
        *("max.poll.records", "metadata.max.age.ms", "metadata.recovery.rebootstrap.trigger.ms"),
        *("metadata.recovery.strategy", "metric.reporters", "metrics.num.samples"),
        *("metrics.recording.level", "metrics.sample.window.ms", "partition.assignment.strategy"),
        *("receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms"),
        *("request.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms", "security.protocol"),
        *("security.providers", "send.buffer.bytes", "session.timeout.ms"),
        *("share.acknowledgement.mode", "share.acquire.mode"),
        *("socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms"),
        *("value.deserializer",),
    }
)
"""Names of ConsumerConfig 4.3 and internal ones, but those of `_FAMILIES`."""
_FAMILIES: Final = ("sasl.", "ssl.")
_FLAGS: Final = ("true", "false")
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("allow.auto.create.topics", "check.crcs", "enable.auto.commit"), _FLAGS),
    **dict.fromkeys(("enable.metrics.push", "exclude.internal.topics"), _FLAGS),
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "group.protocol": ("classic", "consumer"),
    "isolation.level": ("read_uncommitted", "read_committed"),
    "metadata.recovery.strategy": ("none", "rebootstrap"),
    "metrics.recording.level": ("INFO", "DEBUG", "TRACE"),
    "security.protocol": ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
    "share.acknowledgement.mode": ("implicit", "explicit"),
    "share.acquire.mode": ("batch_optimized", "record_limit"),
}
"""Words that the consumer takes. Source: kafka 4.3, ConsumerConfig's validators, each tried."""
_EXACT: Final = frozenset(
    {"client.dns.lookup", "isolation.level", "metrics.recording.level"}
    | {"share.acknowledgement.mode"}
)
"""Settings whose words count only as they are written."""
_RESETS: Final = ("earliest", "latest", "none")
_DURATION: Final = re.compile(
    r"by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?", re.IGNORECASE
)
"""A reset to a time ago. Source: AutoOffsetResetStrategy.fromString, Duration.parse."""
_INSTANCE_ID: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""Source: JoinGroupRequest.validateGroupInstanceId."""
SERVER_ASSIGNORS: Final = ("uniform", "range")
"""Values of `group.remote.assignor`; the brokers' group.consumer.assignors may add some."""
_DEFAULTS: Final = {
    "session.timeout.ms": 45_000,
    "heartbeat.interval.ms": 3_000,
    "max.poll.interval.ms": 300_000,
    "max.poll.records": 500,
    "auto.commit.interval.ms": 5_000,
}
_LEAST: Final = {"max.poll.interval.ms": 1, "max.poll.records": 1, "auto.commit.interval.ms": 0}
_MOST: Final = (1 << 31) - 1
SESSION_BOUNDS_MS: Final = (6_000, 1_800_000)
"""Defaults of the brokers' group.min.session.timeout.ms and group.max.session.timeout.ms."""
_BRIEF_SESSION_MS: Final = 10_000
_RESTART_MS: Final = 60_000
"""Longer than most restarts take."""
_LONG_STATIC_MS: Final = 300_000
_LONG_POLL_MS: Final = 1_800_000
_LONG_COMMIT_MS: Final = 60_000
_HEARTBEATS: Final = 3
"""Heartbeats in a session timeout, by Kafka's own advice for heartbeat.interval.ms."""
_COOPERATIVE: Final = "cooperative-sticky"
_ASSIGNORS: Final = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": _COOPERATIVE,
}
_OF_BROKERS: Final = (
    "heartbeat.interval.ms",
    "session.timeout.ms",
    "partition.assignment.strategy",
)
"""Settings of the classic protocol that group.protocol=consumer refuses.

Source: kafka 4.x, ConsumerConfig, CONSUMER_PROTOCOL_UNSUPPORTED_CONFIGS.
"""


class Weight(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """The client or the broker refuses it."""
    WARNING = "warning"
    """It causes rebalances, or prolongs them."""


class Advice(Struct, frozen=True, kw_only=True):
    """One thing to change.

    Args:
        weight: How bad it is.
        setting: Kafka's name of the setting.
        written: Its name in the file, where that is another; empty otherwise.
        value: Its value; the default in brackets where it is not set.
        what: What follows from it, one clause.
        change: What to do about it, a clause of its own.
    """

    weight: Weight
    setting: str
    value: str
    what: str
    change: str
    written: str = ""


def advise(settings: Mapping[str, str]) -> list[Advice]:
    """Return what should be changed, once a setting: errors first, then by the settings' names."""
    found = [*_unknown(settings), *refused_values(settings), *_remote_assignor(settings)]
    wrong = {each.setting for each in found}
    if settings.get("group.protocol", "classic").strip().lower() == "consumer":
        found += _new_protocol(settings)
    elif not wrong & _DEFAULTS.keys():
        found += membership_advice(settings)
        found += [*_static(settings), *_assignors(settings)]
    if "auto.commit.interval.ms" not in wrong:
        found += _commits(settings)
    return first_of_each(found)


def first_of_each(found: Iterable[Advice]) -> list[Advice]:
    """Return the first advice on each setting: errors first, then by the settings' names."""
    first = {each.setting: each for each in reversed([*found])}
    return sorted(first.values(), key=lambda each: (each.weight is not Weight.ERROR, each.setting))


def membership_advice(settings: Mapping[str, str]) -> Iterator[Advice]:
    """What follows from the timeouts of a classic member; they are whole numbers."""
    for rule in (_session, _heartbeat, _poll_interval):
        yield from rule(settings)


def setting_ms(settings: Mapping[str, str], name: str) -> int:
    """Return a setting that is a whole number, or its default."""
    number = java_int(settings[name], bits=32) if name in settings else None
    return _DEFAULTS[name] if number is None else number


def _advice(settings: Mapping[str, str], name: str, what: str, change: str) -> Advice:
    value = settings.get(name, f"({_DEFAULTS.get(name, 'not set')})")
    return Advice(weight=Weight.WARNING, setting=name, value=value, what=what, change=change)


def _error(name: str, value: str, what: str, change: str) -> Advice:
    return Advice(weight=Weight.ERROR, setting=name, value=value, what=what, change=change)


def _unknown(settings: Mapping[str, str]) -> Iterator[Advice]:
    for name, value in settings.items():
        if name in CONSUMER_NAMES or name.startswith(_FAMILIES):
            continue
        near = get_close_matches(name, CONSUMER_NAMES, n=1, cutoff=0.7)
        what = "no setting of Kafka's consumer, which only logs a warning"
        change = f"did you mean {near[0]}?" if near else "remove it, or move it where it belongs"
        yield Advice(weight=Weight.WARNING, setting=name, value=value, what=what, change=change)


def refused_values(settings: Mapping[str, str]) -> Iterator[Advice]:
    """Values that no consumer starts with: what is no number, no word of the setting, no name."""
    for name in settings.keys() & _WORDS.keys():
        words, value = _WORDS[name], settings[name].strip()
        if value not in words and (name in _EXACT or value.lower() not in words):
            yield _error(name, value, "the consumer does not start", f"set {_either(words)}")
    reset = settings.get("auto.offset.reset", "latest").strip()
    if reset not in _RESETS and not _DURATION.fullmatch(reset):
        change = f"set {_either(_RESETS)}, or by_duration:PT1H"
        yield _error("auto.offset.reset", reset, "the consumer does not start", change)
    instance_id = settings.get("group.instance.id", "")
    if instance_id and not _INSTANCE_ID.fullmatch(instance_id.strip()):
        change = "give letters, digits, '.', '_' and '-', at most 249"
        yield _error("group.instance.id", instance_id, "the consumer does not start", change)
    for name in settings.keys() & _DEFAULTS.keys():
        least = _LEAST.get(name, -_MOST - 1)
        number = java_int(settings[name], bits=32)
        if number is None or number < least:
            change = f"give a whole number from {least} to {_MOST}"
            yield _error(name, settings[name], "the consumer does not start", change)


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _remote_assignor(settings: Mapping[str, str]) -> Iterator[Advice]:
    """What is wrong with the assignor that a member of the consumer protocol asks for.

    Source: kafka 4.x, ConsumerConfig.CLASSIC_PROTOCOL_UNSUPPORTED_CONFIGS and
    GroupMetadataManager.throwIfConsumerGroupHeartbeatRequestIsInvalid.
    """
    name = "group.remote.assignor"
    value = settings.get(name, "").strip()
    if not value:
        return
    if settings.get("group.protocol", "classic").strip().lower() != "consumer":
        what = "the consumer does not start: it is for group.protocol=consumer alone"
        yield _error(name, value, what, "set group.protocol=consumer, or leave it out")
    elif value not in SERVER_ASSIGNORS:
        yield _error(
            name,
            value,
            "brokers refuse it with UNSUPPORTED_ASSIGNOR, unless their group.consumer.assignors "
            "names it",
            f"set {_either(SERVER_ASSIGNORS)}",
        )


def session_advice(
    settings: Mapping[str, str],
    session_ms: int,
    default_ms: int,
    bounds_ms: tuple[int, int] = SESSION_BOUNDS_MS,
) -> Iterator[Advice]:
    """What follows from a session timeout: of a consumer, or of a Connect worker.

    Args:
        settings: The settings.
        session_ms: The session timeout.
        default_ms: The client's default.
        bounds_ms: The least and the most that brokers take.
    """
    name = "session.timeout.ms"
    least_ms, most_ms = bounds_ms
    if not least_ms <= session_ms <= most_ms:
        yield _error(
            name,
            settings.get(name, ""),
            "brokers refuse it with INVALID_SESSION_TIMEOUT",
            f"set {least_ms} to {most_ms}, or change the brokers' "
            "group.min.session.timeout.ms and group.max.session.timeout.ms",
        )
    elif session_ms < _BRIEF_SESSION_MS:
        what = f"a pause of {session_ms / 1000:g} s, as of a garbage collector, fails the member"
        since = ", the default since 3.0" if default_ms == _DEFAULTS[name] else " or more"
        yield _advice(settings, name, what, f"set {default_ms}{since}")


def heartbeat_advice(
    settings: Mapping[str, str], heartbeat_ms: int, session_ms: int, who: str
) -> Iterator[Advice]:
    """Advice on a heartbeat interval that is too long for its session timeout.

    Args:
        settings: The settings.
        heartbeat_ms: The interval.
        session_ms: The session timeout.
        who: The client that does not start with an interval that is too long.
    """
    name = "heartbeat.interval.ms"
    if heartbeat_ms >= session_ms:
        what = f"not below session.timeout.ms={session_ms}: the {who} does not start"
        value = settings.get(name, str(heartbeat_ms))
        yield _error(name, value, what, f"set at most {max(1, session_ms // _HEARTBEATS)}")
    elif heartbeat_ms * _HEARTBEATS > session_ms:
        lost = -(-session_ms // heartbeat_ms) - 1
        what = f"losing {lost} in a row fails the member, at session.timeout.ms={session_ms}"
        yield _advice(settings, name, what, f"set at most {session_ms // _HEARTBEATS}")


def _session(settings: Mapping[str, str]) -> Iterator[Advice]:
    name = "session.timeout.ms"
    return session_advice(settings, setting_ms(settings, name), _DEFAULTS[name])


def _heartbeat(settings: Mapping[str, str]) -> Iterator[Advice]:
    heartbeat_ms = setting_ms(settings, "heartbeat.interval.ms")
    return heartbeat_advice(
        settings, heartbeat_ms, setting_ms(settings, "session.timeout.ms"), "consumer"
    )


def _static(settings: Mapping[str, str]) -> Iterator[Advice]:
    name = "group.instance.id"
    if not settings.get(name):
        what = "every restart rebalances the group twice: when it leaves and when it returns"
        yield _advice(settings, name, what, "give each member a name that outlives its restarts")
    else:
        yield from static_session_advice(settings)


def static_session_advice(settings: Mapping[str, str]) -> Iterator[Advice]:
    """What follows from the session timeout of a static member."""
    session_ms = setting_ms(settings, "session.timeout.ms")
    if session_ms < _RESTART_MS:
        what = f"a restart of more than {session_ms / 1000:g} s rebalances all the same"
        change = f"set {_RESTART_MS} or more: longer than a restart takes"
        yield _advice(settings, "session.timeout.ms", what, change)
    elif session_ms > _LONG_STATIC_MS:
        what = (
            f"partitions of a static member that is gone for good wait for {session_ms / 1000:g} s"
        )
        yield _advice(settings, "session.timeout.ms", what, f"set at most {_LONG_STATIC_MS}")


def _poll_interval(settings: Mapping[str, str]) -> Iterator[Advice]:
    name = "max.poll.interval.ms"
    poll_ms, session_ms = setting_ms(settings, name), setting_ms(settings, "session.timeout.ms")
    if poll_ms > _LONG_POLL_MS:
        what = f"a rebalance waits up to {poll_ms / 1000:g} s for a member that is processing"
        yield _advice(settings, name, what, f"set at most {_LONG_POLL_MS} and fewer records")
    elif poll_ms < session_ms:
        what = f"below session.timeout.ms={session_ms}: slow records, not lost processes, decide"
        yield _advice(settings, name, what, f"set at least {session_ms}")


def _assignors(settings: Mapping[str, str]) -> Iterator[Advice]:
    name = "partition.assignment.strategy"
    given = settings.get(name, "range,cooperative-sticky")
    classes = [part.strip() for part in given.split(",") if part.strip()]
    names = [_ASSIGNORS.get(part, part) for part in classes]
    if names[:1] == [_COOPERATIVE] or not set(names) & set(_ASSIGNORS.values()):
        return
    value = settings.get(name, "(RangeAssignor,CooperativeStickyAssignor)")
    what = f"every rebalance stops all members: {names[0]} is the first that all have"
    change = (
        "name CooperativeStickyAssignor alone, once all members have it"
        if _COOPERATIVE in names
        else "add CooperativeStickyAssignor in one rolling restart, remove the others in a second"
    )
    yield Advice(weight=Weight.WARNING, setting=name, value=value, what=what, change=change)


def _commits(settings: Mapping[str, str]) -> Iterator[Advice]:
    name = "auto.commit.interval.ms"
    interval_ms = setting_ms(settings, name)
    is_automatic = settings.get("enable.auto.commit", "true").lower() == "true"
    if is_automatic and interval_ms > _LONG_COMMIT_MS:
        what = (
            f"a member that dies leaves up to {interval_ms / 1000:g} s of records to be done again"
        )
        yield _advice(settings, name, what, f"set {_DEFAULTS[name]}, the default")


def _new_protocol(settings: Mapping[str, str]) -> Iterator[Advice]:
    for name in _OF_BROKERS:
        if name in settings:
            what = "a consumer with group.protocol=consumer does not start: brokers decide it"
            yield _error(name, settings[name], what, "remove it")
