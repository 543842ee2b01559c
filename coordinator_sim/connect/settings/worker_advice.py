"""What is wrong with a Connect worker's settings: what causes rebalances, or is refused.

Values are texts, as in a `connect-distributed.properties`. Defaults and bounds are those of a
worker of Kafka 4.x.

Source: kafka trunk, connect/runtime/.../distributed/DistributedConfig, WorkerCoordinator,
IncrementalCooperativeAssignor and DistributedHerder.readConfigToEnd; Worker.sinkTaskConsumerConfig.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from msgspec.structs import replace

from coordinator_sim.clients.settings_advice import (
    CONSUMER_NAMES,
    Advice,
    Weight,
    advise,
    first_of_each,
    heartbeat_advice,
    session_advice,
)
from coordinator_sim.connect.settings.worker_settings import PASSED_ON_PREFIXES, WORKER_CONFIG_DEF

CONSUMER_PREFIX: Final = "consumer."
"""Settings of the consumers of sink tasks, for all connectors of the worker."""
_OVERRIDES: Final = ("consumer.override.", "producer.override.", "admin.override.")
_TOPICS: Final = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")
_SESSION: Final = "session.timeout.ms"
_REBALANCE: Final = "rebalance.timeout.ms"
_DELAY: Final = "scheduled.rebalance.max.delay.ms"
_SYNC: Final = "worker.sync.timeout.ms"
_UNSYNC: Final = "worker.unsync.backoff.ms"
_GRACE: Final = "task.shutdown.graceful.timeout.ms"
_PROTOCOL: Final = "connect.protocol"
_RESTART_MS: Final = 60_000
"""Longer than most restarts take."""
_LONG_DELAY_MS: Final = 240_000
_LONG_REBALANCE_MS: Final = 1_800_000
_BRIEF_SYNC_MS: Final = 1_000


def advise_worker(settings: Mapping[str, str], *, is_running: bool = False) -> list[Advice]:
    """Return what should be changed, once a setting: errors first, then by the settings' names.

    Args:
        settings: The settings; what is not there has its default.
        is_running: Whether the worker took these settings, and some are left out.
    """
    refused = () if is_running else _refused(settings)
    found = [*refused, *_unknown(settings), *_topics(settings)]
    if not any(each.weight is Weight.ERROR for each in found):
        numbers = _numbers(settings)
        found += session_advice(settings, numbers[_SESSION], default_ms=10_000)
        found += heartbeat_advice(
            settings, numbers["heartbeat.interval.ms"], numbers[_SESSION], who="worker"
        )
        for rule in (_protocol, _delay, _rebalance, _sync):
            found += rule(settings, numbers)
    found += [
        replace(each, setting=CONSUMER_PREFIX + each.setting)
        for each in advise_sinks(sink_settings(settings))
    ]
    return first_of_each(found)


def sink_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the consumers of sink tasks, without their prefix."""
    return {
        name.removeprefix(CONSUMER_PREFIX): value
        for name, value in settings.items()
        if name.startswith(CONSUMER_PREFIX) and not name.startswith(_OVERRIDES)
    }


def _numbers(settings: Mapping[str, str]) -> dict[str, int]:
    values = WORKER_CONFIG_DEF.validate_all(settings)
    return {name: each.value for name, each in values.items() if isinstance(each.value, int)}


def _refused(settings: Mapping[str, str]) -> Iterator[Advice]:
    for name, value in WORKER_CONFIG_DEF.validate_all(settings).items():
        if value.errors:
            given = settings.get(name)
            what = "the worker does not start: " + value.errors[0].rstrip(".")
            change = "set it" if given is None else "give a value that it takes"
            shown = "(not set)" if given is None else given
            yield Advice(weight=Weight.ERROR, setting=name, value=shown, what=what, change=change)


def _unknown(settings: Mapping[str, str]) -> Iterator[Advice]:
    for name in settings:
        if name.startswith(_OVERRIDES):
            what = "an override is a connector's setting: in a worker's file it does nothing"
            own = name.replace("override.", "", 1)
            change = f"write {own} for all connectors, or move it to a connector's configuration"
        elif name in WORKER_CONFIG_DEF.keys or name.startswith(PASSED_ON_PREFIXES):
            continue
        elif name == "group.instance.id":
            what = "workers have no static membership, and ignore it"
            change = f"{_DELAY} is how long a worker's work waits for its return"
        elif name in CONSUMER_NAMES:
            what = "a consumer's setting, which the worker itself ignores"
            change = f"write {CONSUMER_PREFIX}{name} for the consumers of sink tasks"
        else:
            near = get_close_matches(name, list(WORKER_CONFIG_DEF.keys), n=1, cutoff=0.7)
            what = "no setting of a Connect worker, which only logs a warning"
            change = f"did you mean {near[0]}?" if near else "remove it, or move it to its place"
        yield _warning(settings, name, what, change)


def _topics(settings: Mapping[str, str]) -> Iterator[Advice]:
    names: dict[str, str] = {}
    for name in _TOPICS:
        topic = settings.get(name)
        if topic is None:
            continue
        if topic in names:
            what = f"{names[topic]} has the same topic, so each store reads the other's records"
            yield _warning(settings, name, what, "give each store a topic of its own")
        names.setdefault(topic, name)


def _protocol(settings: Mapping[str, str], numbers: Mapping[str, int]) -> Iterator[Advice]:
    is_eager = settings.get(_PROTOCOL, "").lower() == "eager"
    if is_eager:
        what = "every rebalance stops all connectors and tasks of all workers"
        yield _warning(settings, _PROTOCOL, what, "set sessioned, the default since 2.4")
        if numbers[_UNSYNC] > _RESTART_MS:
            what = (
                f"a worker that cannot read the config topic in time stays away for "
                f"{numbers[_UNSYNC] / 1000:g} s"
            )
            yield _warning(settings, _UNSYNC, what, f"set {_RESTART_MS} or less")
        if _DELAY in settings:
            what = "does nothing with connect.protocol=eager: work is never kept for a worker"
            yield _warning(settings, _DELAY, what, "set connect.protocol=sessioned")
    elif _UNSYNC in settings:
        what = "does nothing but with connect.protocol=eager"
        change = f"remove it: retries wait for shares of {_DELAY}"
        yield _warning(settings, _UNSYNC, what, change)


def _delay(settings: Mapping[str, str], numbers: Mapping[str, int]) -> Iterator[Advice]:
    delay_ms = numbers[_DELAY]
    if settings.get(_PROTOCOL, "").lower() == "eager":
        return
    if delay_ms > _LONG_DELAY_MS:
        what = (
            f"connectors and tasks of a lost worker stand still for {delay_ms / 1000:g} s, those "
            f"of a lone worker, too, after an outage longer than its session"
        )
        yield _warning(settings, _DELAY, what, "set what a restart of a worker takes, and a little")
    elif delay_ms < _RESTART_MS:
        what = (
            f"a restart of more than {delay_ms / 1000:g} s moves the worker's connectors and tasks "
            "away and back again"
        )
        yield _warning(settings, _DELAY, what, f"set {_RESTART_MS}, or what a restart takes")


def _rebalance(settings: Mapping[str, str], numbers: Mapping[str, int]) -> Iterator[Advice]:
    limit_ms, grace_ms = numbers[_REBALANCE], numbers[_GRACE]
    if limit_ms <= grace_ms:
        what = (
            f"a worker may wait {grace_ms / 1000:g} s for its tasks ({_GRACE}), and is removed "
            "from the group meanwhile"
        )
        yield _warning(settings, _REBALANCE, what, f"set more than {grace_ms}")
    elif limit_ms > _LONG_REBALANCE_MS:
        what = f"a rebalance waits up to {limit_ms / 1000:g} s for a worker that hangs"
        yield _warning(settings, _REBALANCE, what, "set 60000, the default")


def _sync(settings: Mapping[str, str], numbers: Mapping[str, int]) -> Iterator[Advice]:
    sync_ms = numbers[_SYNC]
    if sync_ms < _BRIEF_SYNC_MS:
        what = (
            f"a worker that needs more than {sync_ms / 1000:g} s to read the config topic leaves "
            "the group, which rebalances"
        )
        yield _warning(settings, _SYNC, what, "set 3000, the default")
    elif sync_ms >= numbers[_REBALANCE]:
        what = (
            f"a worker that reads the config topic misses a rebalance of "
            f"{numbers[_REBALANCE] / 1000:g} s"
        )
        yield _warning(settings, _SYNC, what, f"set less than {_REBALANCE}")


def advise_sinks(settings: Mapping[str, str]) -> list[Advice]:
    """Return what is wrong with the settings of sink tasks' consumers, of those that are set."""
    ids = ("group.id", "group.instance.id")
    found = []
    for name in settings.keys() & {*ids}:
        what = (
            "sink connectors share one group"
            if name == "group.id"
            else "all sink tasks have this one name, and fence each other"
        )
        change = "remove it: each sink connector has the group connect-NAME"
        found.append(_warning(settings, name, what, change))
    found += [each for each in advise(settings) if each.setting in settings.keys() - {*ids}]
    return first_of_each(found)


def _warning(settings: Mapping[str, str], name: str, what: str, change: str) -> Advice:
    default = WORKER_CONFIG_DEF.keys.get(name)
    value = settings.get(name, f"({None if default is None else default.default})")
    return Advice(weight=Weight.WARNING, setting=name, value=value, what=what, change=change)
