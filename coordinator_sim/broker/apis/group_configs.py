"""Validation of the settings of a group: names, values, the brokers' bounds.

Source: kafka 4.3 and 4.4, GroupConfigManager.validate, GroupConfig.validateValues; answers of a
kafka 4.4.0 (texts).
"""

from collections.abc import Iterator, Mapping
from typing import Final

from coordinator_sim.broker.apis.administration import NO_ERROR, ApiError
from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.configs.setting_types import Value, list_of, parse
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import Profile

_BOUND_NAMES: Final = {
    "num.standby.replicas": "standby.replicas",
    "num.warmup.replicas": "warmup.replicas",
}
"""Settings whose bounds are named otherwise than they are."""
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_TAGS: Final = "streams.rack.aware.assignment.tags"
_ASSIGNOR: Final = "streams.assignor.name"
_SESSION: Final = "session.timeout.ms"
_HEARTBEAT: Final = "heartbeat.interval.ms"


def group_error(
    profile: Profile, configs: Configs, name: str, values: Mapping[str, str]
) -> ApiError:
    """The error of the complete new settings of a group, or NO_ERROR.

    Args:
        profile: Words differ by release.
        configs: Settings of the brokers, which bound those of groups.
        name: Name of the group, which need not exist.
        values: All settings of the group itself.
    """
    if not name:
        return ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    for each in values:
        if each not in configs.group:
            return _invalid(f"Unknown group config name: {each}")
    tags = list_of(values.get(_TAGS, ""))
    if len(set(tags)) != len(tags):
        return _invalid(f"{_TAGS} must not contain duplicate tag keys.")
    try:
        parsed = {
            each: parse(setting, values[each])
            for each, setting in configs.group.items()
            if each in values
        }
    except ConfigError as error:
        return _invalid(str(error))
    complaint = next(_complaints(profile, configs, parsed), None)
    return NO_ERROR if complaint is None else _invalid(complaint)


def _complaints(profile: Profile, configs: Configs, parsed: Mapping[str, Value]) -> Iterator[str]:
    """What is wrong with values that can be read: bounds, the assignor, sessions, the queue."""
    order = {name: index for index, name in enumerate(configs.group)}
    # In the table a heartbeat follows its session; its bounds are checked before.
    for name in sorted(parsed, key=lambda each: order[each] - 2 * each.endswith(_HEARTBEAT)):
        value = parsed[name]
        if isinstance(value, int):
            yield from _out_of_bounds(profile, configs, name, value)
    if _ASSIGNOR in parsed:
        yield from _unregistered(configs, parsed[_ASSIGNOR])
    for kind in dict.fromkeys(name.partition(".")[0] for name in parsed):
        session, heartbeat = f"{kind}.{_SESSION}", f"{kind}.{_HEARTBEAT}"
        timeout_ms = _effective(configs, parsed, session)
        interval_ms = _effective(configs, parsed, heartbeat)
        if timeout_ms is not None and interval_ms is not None and timeout_ms <= interval_ms:
            yield f"{session} must be greater than {heartbeat}"
    if str(parsed.get(_DEAD_LETTERS, "")).startswith("__"):
        yield f"{_DEAD_LETTERS}: DLQ topic name must not start with '__'"


def _unregistered(configs: Configs, assignor: Value) -> Iterator[str]:
    registered = configs.broker_value("group.streams.assignors")
    if isinstance(registered, list) and assignor not in registered:
        yield (
            f"{_ASSIGNOR} '{assignor}' is not a registered task assignor. Registered assignors "
            f"are: [{', '.join(registered)}]."
        )


def _out_of_bounds(profile: Profile, configs: Configs, name: str, value: int) -> Iterator[str]:
    kind, _, rest = name.partition(".")
    rest = _BOUND_NAMES.get(rest, rest)
    lowest, highest = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"
    low, high = _bound(configs, lowest), _bound(configs, highest)
    is_low, is_high = low is not None and value < low, high is not None and value > high
    if not is_low and not is_high:
        return
    if profile.tells_group_bounds and low is not None and high is not None:
        yield f"{name} must be in the range {low} to {high} inclusive."
    elif is_low:
        yield (
            f"{name} must be greater than or equal to "
            f"{low if profile.tells_group_bounds else lowest}"
        )
    else:
        yield (
            f"{name} must be less than or equal to "
            f"{high if profile.tells_group_bounds else highest}"
        )


def _effective(configs: Configs, parsed: Mapping[str, Value], name: str) -> int | None:
    """A setting of the group, or else that of the brokers; None if neither have it."""
    value = parsed[name] if name in parsed else _bound(configs, f"group.{name}")
    return value if isinstance(value, int) else None


def _bound(configs: Configs, name: str) -> int | None:
    value = configs.broker_value(name) if name in configs.broker else None
    return value if isinstance(value, int) else None


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, text)
