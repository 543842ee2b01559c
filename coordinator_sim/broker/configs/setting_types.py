"""Kafka's settings: name, type, range and default of each, and how a text is parsed to a value.

The tables were recorded from each release's own classes (`kafka.releases`).

Source: kafka trunk, clients/.../common/config/ConfigDef.java (parseType, Range, ValidString,
ValidList), ConfigException.java.
"""

import re
from enum import Enum, unique
from functools import cache
from math import isfinite, isnan
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.java_durations import duration_ns
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.kafka.releases import recording

Value = bool | int | float | str | list[str] | None
"""Value of a setting; None if it has none."""


@unique
class SettingType(Enum):
    """The types of Kafka's settings. Source: ConfigDef.Type."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 - the name of a type


class Setting(Struct, frozen=True, rename="camel", kw_only=True):
    """One setting.

    Args:
        of: broker, topic or group.
        default: Default as text; None if there is none.
        required: Whether there must be a value.
        internal: Whether the setting is hidden from listings.
        dynamic: For a broker setting: whether it can change while the broker runs.
        synonym: For a topic setting: the broker setting that gives its default.
        at_least: Smallest value, as error messages write it.
        at_most: Largest value, as error messages write it.
        one_of: Allowed values; empty for any.
        ignores_case: Whether the allowed values match in any case.
        distinct: Whether a list drops repeated values and refuses empty ones.
        non_empty: Whether a list must have a value.
        rule: Further validator, in Kafka's words.
    """

    of: str
    name: str
    type: SettingType
    default: str | None = None
    required: bool = False
    internal: bool = False
    dynamic: bool = False
    synonym: str | None = None
    at_least: str | None = None
    at_most: str | None = None
    one_of: tuple[str, ...] = ()
    ignores_case: bool = False
    distinct: bool = False
    non_empty: bool = False
    rule: str | None = None

    @property
    def is_secret(self) -> bool:
        """Whether the value must never be shown. Source: KafkaConfig.maybeSensitive."""
        return self.type is SettingType.PASSWORD


Settings = dict[str, Setting]
"""Settings by name, in the order in which Kafka checks them."""

_BITS: Final = {SettingType.SHORT: 16, SettingType.INT: 32, SettingType.LONG: 64}
_DOUBLE: Final = re.compile(
    r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)"
)
_THROTTLED: Final = re.compile(r"([0-9]+:[0-9]+)?")
_THROTTLED_RULES: Final = ("[partitionId]", "ThrottledReplicaListValidator")
"""Names of the validator in the tables; 0.10.2's has no text, only its class name."""
_BY_DURATION: Final = "by_duration:"
_ALL: Final = "*"
"""Throttled list that stands for all replicas."""


@cache
def _table(name: str) -> tuple[Setting, ...]:
    return tuple(msgspec.json.Decoder(Setting).decode_lines(recording(name, "settings.jsonl")))


def settings_of(table: str, of: str) -> Settings:
    """The settings of one kind in a release's table.

    Args:
        table: Name of the table, which is that of a profile.
        of: broker, topic or group.
    """
    return {setting.name: setting for setting in _table(table) if setting.of == of}


def list_of(text: str) -> list[str]:
    """The items between commas, without white space around them; one for an empty text.

    Source: ConfigDef.parseType (LIST).
    """
    return [each.strip() for each in text.split(",")]


def parse(setting: Setting, text: str | None) -> Value:
    """Parse and validate the text of a setting.

    Raises:
        ConfigError: the text cannot be parsed or the value is not allowed; with the message of
            Kafka's exception.
    """
    value = _parsed(setting, text)
    if setting.distinct and isinstance(value, list):
        value = list(dict.fromkeys(value))
    _check(setting, value)
    return value


def default_of(setting: Setting) -> Value:
    """The default value of a setting; None if it has none."""
    return None if setting.default is None else _parsed(setting, setting.default)


def text_of(value: Value) -> str | None:
    """A value as text. Source: ConfigDef.convertToString."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, list):
        return ",".join(value)
    return None if value is None else str(value)


def _double_text(value: float) -> str:
    """A double as text. Source: java.lang.Double.toString."""
    if not isfinite(value):
        sign = "-" if value < 0 else ""
        return "NaN" if isnan(value) else f"{sign}Infinity"
    low, high = 1e-3, 1e7
    if value == 0 or low <= abs(value) < high:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        mantissa, _, exponent = f"{value:.16e}".partition("e")
        mantissa = mantissa.rstrip("0")
    whole, _, fraction = mantissa.partition(".")
    return f"{whole}.{fraction or '0'}E{int(exponent)}"


def _refused(setting: Setting, value: object, why: str) -> ConfigError:
    shown = "[hidden]" if setting.is_secret else value
    return ConfigError(f"Invalid value {shown} for configuration {setting.name}: {why}")


def _parsed(setting: Setting, text: str | None) -> Value:
    """Parse a text by the setting's type. Source: ConfigDef.parseType."""
    if text is None:
        return None
    trimmed = text.strip()
    if setting.type is SettingType.BOOLEAN:
        if trimmed.lower() not in {"true", "false"}:
            raise _refused(setting, text, "Expected value to be either true or false")
        return trimmed.lower() == "true"
    if setting.type is SettingType.LIST:
        return list_of(trimmed) if trimmed else []
    if setting.type is SettingType.DOUBLE:
        if not _DOUBLE.fullmatch(trimmed):
            raise _refused(setting, text, "Not a number of type DOUBLE")
        return float(trimmed.rstrip("fFdD"))
    bits = _BITS.get(setting.type)
    return trimmed if bits is None else _integer(setting, text, trimmed, bits)


def _integer(setting: Setting, text: str, trimmed: str, bits: int) -> int:
    number = java_int(trimmed, bits)
    if number is None:
        raise _refused(setting, text, f"Not a number of type {setting.type.value}")
    return number


def _check(setting: Setting, value: Value) -> None:
    if value is None:
        return
    if isinstance(value, list):
        _check_list(setting, value)
    elif isinstance(value, int | float):
        _check_range(setting, value)
    elif setting.one_of:
        _check_choice(setting, value)
    _check_rule(setting, value)


def _check_range(setting: Setting, value: float) -> None:
    """Refuse a number out of range. Source: ConfigDef.Range.ensureValid."""
    if setting.at_least is not None and value < float(setting.at_least):
        raise _refused(setting, text_of(value), f"Value must be at least {setting.at_least}")
    if setting.at_most is not None and value > float(setting.at_most):
        raise _refused(setting, text_of(value), f"Value must be no more than {setting.at_most}")


def _check_choice(setting: Setting, value: str) -> None:
    """Refuse a text not in `one_of`. Source: ConfigDef.ValidString, CaseInsensitiveValidString."""
    if value in setting.one_of or (setting.ignores_case and value.upper() in setting.one_of):
        return
    kind = "String must be one of (case insensitive)" if setting.ignores_case else None
    choices = ", ".join(setting.one_of)
    raise _refused(setting, value, f"{kind or 'String must be one of'}: {choices}")


def _check_list(setting: Setting, values: list[str]) -> None:
    """Refuse a bad list. Source: ConfigDef.ValidList.ensureValid; KIP-1161 (all but the last)."""
    name = setting.name
    if setting.non_empty and not values:
        wanted = f"[{', '.join(setting.one_of)}]" if setting.one_of else "any non-empty value"
        raise ConfigError(
            f"Configuration '{name}' must not be empty. Valid values include: {wanted}"
        )
    if setting.distinct and "" in values:
        raise ConfigError(f"Configuration '{name}' values must not be empty.")
    if setting.one_of:
        for value in values:
            _check_choice(setting, value)


def _check_rule(setting: Setting, value: Value) -> None:
    """Apply `rule`. Source: CompressionType.GZIP.levelValidator; ThrottledReplicaListValidator."""
    rule = setting.rule
    if rule == "[1,...,9] or -1" and value not in {-1, *range(1, 10)}:
        raise _refused(setting, value, "Value must be between 1 and 9 or equal to -1")
    if rule == "non-empty string" and value == "":
        raise _refused(setting, value, "String must be non-empty")
    if rule and rule.startswith(_THROTTLED_RULES):
        _check_throttled(setting, value)
    if rule and "by_duration" in rule and not _is_reset(str(value)):
        text = (
            f"Invalid value `{value}` for configuration {setting.name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        raise _refused(setting, value, text)


def _is_reset(value: str) -> bool:
    """Whether a value is one of `share.auto.offset.reset`. Source: AutoOffsetResetStrategy."""
    if not value.startswith(_BY_DURATION):
        return value in ("earliest", "latest")
    duration = duration_ns(value.removeprefix(_BY_DURATION))
    return duration is not None and duration >= 0


def _check_throttled(setting: Setting, value: Value) -> None:
    entries = [each.strip() for each in value] if isinstance(value, list) else []
    if "".join(entries) == _ALL or all(_THROTTLED.fullmatch(each) for each in entries):
        return
    why = (
        f"{setting.name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )
    raise _refused(setting, f"[{', '.join(entries)}]", why)
