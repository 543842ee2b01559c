"""Definitions of settings, and the parsing of properties by them, with Kafka's error texts.

Shared by the worker's and the connectors' configurations. No setting is defined here.

Source: kafka trunk, clients/.../common/config/ConfigDef.java, ConfigException.java.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import INVALID_PATTERN, ConfigError
from coordinator_sim.kafka.java_numbers import java_int

ConfigInput = str | int | bool | float | tuple[str, ...] | None
"""A parsed setting; None is Java's null."""
Properties = Mapping[str, str | None]
"""Settings as given; a JSON body may hold null values."""
Validator = Callable[[str, ConfigInput], str | None]
"""Checks a parsed value, given the setting's name: the error message, or None."""
ClassLookup = Callable[[str], str | None]
"""Maps a class name or alias to the full class name; None when it is not installed."""

_COMMA: Final = re.compile(r"\s*,\s*")


@unique
class NoDefault(Enum):
    """Mark of a setting that is required."""

    REQUIRED = "REQUIRED"


@unique
class Type(Enum):
    """Kinds of settings."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 - the kind of a setting


_BITS: Final = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}


class ConfigKey(Struct, frozen=True, kw_only=True):
    """The definition of one setting.

    Args:
        validators: Checks in order; the first message counts.
        group: Group in a user interface; None for none.
        order_in_group: Position in the group; -1 for last.
        recommended: Values that a user interface offers.
    """

    name: str
    type: Type
    default: ConfigInput | NoDefault = NoDefault.REQUIRED
    validators: tuple[Validator, ...] = ()
    importance: str = "HIGH"
    documentation: str = ""
    group: str | None = None
    order_in_group: int = -1
    width: str = "NONE"
    display_name: str = ""
    recommended: tuple[str, ...] = ()


class ConfigValue:
    """Result of validating one setting.

    Attributes:
        value: Parsed value; None when it could not be parsed.
        errors: Messages, in the order found.
        recommended: Values that a user interface offers.
    """

    __slots__ = ("errors", "name", "recommended", "value")

    def __init__(self, name: str, value: ConfigInput = None) -> None:
        self.name = name
        self.value = value
        self.recommended: tuple[str, ...] = ()
        self.errors: list[str] = []


def itself(name: str) -> str:
    """Return the name itself: a class lookup that accepts any name and defers the check."""
    return name


class ConfigDef:
    """Definitions of settings, in the order given.

    Args:
        keys: The definitions; a later one replaces an earlier one of the same name.
    """

    def __init__(self, keys: Iterable[ConfigKey] = ()) -> None:
        self.keys: dict[str, ConfigKey] = {key.name: key for key in keys}

    def groups(self) -> list[str]:
        """Return the groups of the settings, in order of first mention."""
        return list(dict.fromkeys(key.group for key in self.keys.values() if key.group is not None))

    def with_keys(self, keys: Iterable[ConfigKey]) -> "ConfigDef":
        """Return these definitions extended by more."""
        return ConfigDef((*self.keys.values(), *keys))

    def parse(self, props: Properties, class_of: ClassLookup = itself) -> dict[str, ConfigInput]:
        """Return the value of every defined setting, given or by default.

        Raises:
            ConfigError: the first invalid setting, in the order of definition.
        """
        values: dict[str, ConfigInput] = {}
        for value in self.validate_all(props, class_of).values():
            if value.errors:
                raise ConfigError(value.errors[0])
            values[value.name] = value.value
        return values

    def validate_all(
        self, props: Properties, class_of: ClassLookup = itself
    ) -> dict[str, ConfigValue]:
        """Validate each defined setting; return results by name, in the order of definition."""
        return {key.name: _validated(key, props, class_of) for key in self.keys.values()}


def _validated(key: ConfigKey, props: Properties, class_of: ClassLookup) -> ConfigValue:
    found = ConfigValue(key.name)
    found.recommended = key.recommended
    if key.name in props:
        try:
            found.value = parse_type(key.name, props[key.name], key.type, class_of)
        except ConfigError as error:
            found.errors.append(str(error))
    elif isinstance(key.default, NoDefault):
        found.errors.append(
            f'Missing required configuration "{key.name}" which has no default value.'
        )
    else:
        found.value = key.default
    # QUIRK: a value that did not parse is still validated, as null, so one mistake may give
    # two messages.
    for validator in key.validators:
        message = validator(key.name, found.value)
        if message is not None:
            found.errors.append(message)
            break
    return found


def parse_type(
    name: str, text: str | None, kind: Type, class_of: ClassLookup = itself
) -> ConfigInput:
    """Convert a setting's text to a value of its type.

    Raises:
        ConfigError: the text does not match the type; the message is Kafka's.

    Source: ConfigDef.parseType.
    """
    if text is None:
        return None
    trimmed = text.strip()
    match kind:
        case Type.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                raise ConfigError(invalid(name, text, "Expected value to be either true or false"))
            return trimmed.lower() == "true"
        case Type.INT | Type.SHORT | Type.LONG:
            return _whole_number(name, text, kind)
        case Type.DOUBLE:
            return _decimal(name, text)
        case Type.LIST:
            return tuple(_COMMA.split(trimmed)) if trimmed else ()
        case Type.CLASS:
            full = class_of(trimmed)
            if full is None:
                raise ConfigError(invalid(name, text, f"Class {text} could not be found."))
            return full
    return trimmed


def _whole_number(name: str, text: str, kind: Type) -> int:
    number = java_int(text.strip(), _BITS[kind])
    if number is None:
        raise ConfigError(invalid(name, text, f"Not a number of type {kind.value}"))
    return number


def _decimal(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(invalid(name, text, "Not a number of type DOUBLE")) from None


def invalid(name: str, value: ConfigInput, why: str) -> str:
    """Return Kafka's message for an invalid value."""
    return f"Invalid value {java_text(value)} for configuration {name}: {why}"


def java_text(value: ConfigInput) -> str:
    """Format a value as Java does."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case tuple():
            return f"[{', '.join(value)}]"
    return str(value)


def config_text(value: ConfigInput) -> str | None:
    """Return the text that a parsed value can be given by. Source: ConfigDef.convertToString."""
    if value is None:
        return None
    return ",".join(value) if isinstance(value, tuple) else java_text(value)


# -- validators ------------------------------------------------------------------------------


def at_least(low: int) -> Validator:
    """Accept numbers from `low` on; null is refused. Source: ConfigDef.Range.atLeast."""
    return between(low, None)


def between(low: int, high: int | None) -> Validator:
    """Accept numbers from `low` to `high`, both included. Source: ConfigDef.Range."""

    def validate(name: str, value: ConfigInput) -> str | None:
        if not isinstance(value, int | float):
            return invalid(name, None, "Value must be non-null")
        if value < low:
            return invalid(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            return invalid(name, value, f"Value must be no more than {high}")
        return None

    return validate


def one_of(*choices: str, ignore_case: bool = False) -> Validator:
    """Accept one of some texts. Source: ConfigDef.ValidString, CaseInsensitiveValidString.

    Args:
        choices: The texts, in capitals if case is ignored.
        ignore_case: Whether case is ignored.
    """
    allowed = tuple(text.upper() for text in choices) if ignore_case else choices
    what = (
        "String must be one of (case insensitive): " if ignore_case else "String must be one of: "
    )

    def validate(name: str, value: ConfigInput) -> str | None:
        text = value if isinstance(value, str) else None
        if text is not None and (text.upper() if ignore_case else text) in allowed:
            return None
        return invalid(name, value, what + ", ".join(allowed))

    return validate


def non_empty(name: str, value: ConfigInput) -> str | None:
    """Refuse the empty text. Source: ConfigDef.NonEmptyString."""
    return invalid(name, value, "String must be non-empty") if value == "" else None


def non_null(name: str, value: ConfigInput) -> str | None:
    """Refuse null. Source: ConfigDef.NonNullValidator."""
    return invalid(name, None, "entry must be non null") if value is None else None


def plain_name(name: str, value: ConfigInput) -> str | None:
    """Accept a text that is not empty and has no control characters; null passes.

    Source: ConfigDef.NonEmptyStringWithoutControlChars.
    """
    if not isinstance(value, str):
        return None
    if value == "":
        return invalid(name, value, "String may not be empty")
    controls = [str(ord(c)) for c in value if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0]  # noqa: PLR2004 - the ISO control characters
    if not controls:
        return None
    return invalid(
        name,
        value,
        "String may not contain control sequences but had the following ASCII chars: "
        + ", ".join(controls),
    )


def regex(name: str, value: ConfigInput) -> str | None:
    """Accept a pattern that compiles; null passes. Source: connect RegexValidator.

    DEVIATION: patterns are Python's, and so is the reason given; Java accepts a few others.
    """
    try:
        re.compile(value if isinstance(value, str) else "")
    except INVALID_PATTERN as error:
        return invalid(name, value, f"Invalid regex: {error}")
    return None


def unique_aliases(name: str, value: ConfigInput) -> str | None:
    """Refuse lists with repetitions, and null. Source: ConnectorConfig.aliasValidator."""
    if not isinstance(value, tuple):
        return non_null(name, None)
    if len(set(value)) < len(value):
        return invalid(name, value, "Duplicate alias provided.")
    return None
