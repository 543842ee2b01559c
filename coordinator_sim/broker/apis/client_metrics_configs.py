"""Settings of client metrics subscriptions: stored and described; clients are never asked to push.

Source: kafka trunk, ClientMetricsConfigs.java.
"""

import re
from collections.abc import Mapping
from typing import Final

from coordinator_sim.broker.apis.administration import NO_ERROR, ApiError
from coordinator_sim.broker.configs.setting_types import Setting, SettingType, parse
from coordinator_sim.errors import INVALID_PATTERN, ConfigError
from coordinator_sim.kafka.errors import ErrorCode

_OF: Final = "client-metrics"
CLIENT_METRICS_SETTINGS: Final = {
    setting.name: setting
    for setting in (
        Setting(of=_OF, name="metrics", type=SettingType.LIST, default=""),
        Setting(of=_OF, name="interval.ms", type=SettingType.INT, default="300000"),
        Setting(of=_OF, name="match", type=SettingType.LIST, default=""),
    )
}
_SHORTEST_MS: Final = 100
_LONGEST_MS: Final = 3_600_000
_PARAMETERS: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def client_metrics_error(name: str, values: Mapping[str, str]) -> ApiError:
    """The error of the complete settings of a subscription, or NO_ERROR."""
    if not name:
        return ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for each in values:
        if each not in CLIENT_METRICS_SETTINGS:
            text = f"Unknown client metrics configuration: {each}"
            return ApiError(ErrorCode.INVALID_REQUEST, text)
    try:
        parsed = {each: parse(CLIENT_METRICS_SETTINGS[each], values[each]) for each in values}
    except ConfigError as error:
        return ApiError(ErrorCode.INVALID_CONFIG, str(error))
    interval_ms, patterns = parsed.get("interval.ms"), parsed.get("match", [])
    if isinstance(interval_ms, int) and not _SHORTEST_MS <= interval_ms <= _LONGEST_MS:
        text = (
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and "
            "3600000 (1 hour)"
        )
        return ApiError(ErrorCode.INVALID_REQUEST, text)
    for pattern in patterns if isinstance(patterns, list) else ():
        if not _is_pattern(pattern):
            text = f"Illegal client matching pattern: {pattern}"
            return ApiError(ErrorCode.INVALID_CONFIG, text)
    return NO_ERROR


def _is_pattern(text: str) -> bool:
    parameter, _, pattern = text.partition("=")
    if parameter.strip() not in _PARAMETERS or not pattern or "=" in pattern:
        return False
    try:
        re.compile(pattern.strip())
    except INVALID_PATTERN:
        return False
    return True
