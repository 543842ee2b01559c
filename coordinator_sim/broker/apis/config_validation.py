"""Validation of new settings of a topic or a broker; `group_configs` has those of a group.

Source: kafka trunk, ControllerConfigurationValidator.scala, LogConfig.validate,
DynamicBrokerConfig.validateConfigs.
"""

from collections.abc import Mapping
from typing import Final

from coordinator_sim.broker.apis.administration import NO_ERROR, ApiError
from coordinator_sim.broker.configs.configs import Configs, base_name
from coordinator_sim.broker.configs.setting_types import Setting, Settings, Value, parse
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.topic_names import complaint

_LISTENER_PREFIX: Final = "listener.name."
_CLUSTER_WIDE_LISTENER: Final = (
    "max.connections",
    "max.connection.creation.rate",
    "num.network.threads",
)
_PER_BROKER: Final = frozenset(
    {
        "cordoned.log.dirs",
        "listeners",
        "listener.security.protocol.map",
        "principal.builder.class",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.mechanism.inter.broker.protocol",
    }
)
"""Settings that exist per broker, beside those of SSL. Source: PerBrokerConfigs."""


def topic_error(configs: Configs, name: str, values: Mapping[str, str]) -> ApiError:
    """The error of the complete new settings of a topic, or NO_ERROR.

    Args:
        configs: Settings of the brokers.
        name: Name of the topic, which may not exist yet.
        values: All settings of the topic itself.
    """
    if not name:
        return _invalid_request("Default topic resources are not allowed.")
    text = complaint(name)
    if text is not None:
        return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    for each in values:
        if each not in configs.topic:
            return _invalid_config(f"Unknown topic config name: {each}")
    try:
        parsed = {
            setting.name: parse(setting, values[setting.name])
            if setting.name in values
            else configs.topic_default(setting)
            for setting in configs.topic.values()
        }
    except ConfigError as error:
        return _invalid_config(str(error))
    text = _topic_conflict(parsed)
    return NO_ERROR if text is None else _invalid_config(text)


def _topic_conflict(parsed: Mapping[str, Value]) -> str | None:
    """The conflict between settings of a topic, or None.

    Source: LogConfig.validateValues, validateTopicLogConfigValues.
    """
    shortest, longest = parsed["min.compaction.lag.ms"], parsed.get("max.compaction.lag.ms")
    if isinstance(shortest, int) and isinstance(longest, int) and shortest > longest:
        return (
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
            f"max.compaction.lag.ms ({longest})"
        )
    if parsed.get("remote.storage.enable"):
        return (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    return None


def broker_error(configs: Configs, values: Mapping[str, str], *, one_broker: bool) -> ApiError:
    """The error of the complete new dynamic settings of one broker or of all brokers.

    An unknown name is allowed: it belongs to a plugin.

    Args:
        configs: The known settings.
        values: All dynamic settings.
        one_broker: Whether the settings are those of a single broker.
    """
    text = _broker_complaint(configs.broker, values, one_broker=one_broker)
    return NO_ERROR if text is None else _invalid_request(text)


def _broker_complaint(
    known: Settings, values: Mapping[str, str], *, one_broker: bool
) -> str | None:
    fixed = [name for name in values if name in known and not known[name].dynamic]
    if fixed:
        return f"Cannot update these configs dynamically: {_set_text(fixed)}"
    bare = [name for name in values if _is_security(known.get(name))]
    if bare:
        return (
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: {_set_text(bare)}"
        )
    try:
        for name, text in values.items():
            setting = known.get(base_name(name))
            if setting is not None:
                parse(setting, text)
    except ConfigError as error:
        return str(error)
    own = [name for name in values if not one_broker and _is_per_broker(name)]
    if own:
        return (
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"{_set_text(own)}"
        )
    return None


def _is_security(setting: Setting | None) -> bool:
    return setting is not None and setting.dynamic and setting.name.startswith("ssl.")


def _is_per_broker(name: str) -> bool:
    if name.startswith(_LISTENER_PREFIX):
        return base_name(name) not in _CLUSTER_WIDE_LISTENER
    return name in _PER_BROKER or name.startswith(("sasl.kerberos.", "sasl.login.refresh."))


def _set_text(names: list[str]) -> str:
    return f"[{', '.join(names)}]"


def _invalid_request(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _invalid_config(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, text)
