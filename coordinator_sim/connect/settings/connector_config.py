"""The settings that every connector has, and what must hold among them.

Not here: what a connector class defines itself (its manifest), and who asks (`validation`).

Source: kafka trunk, connect/runtime/.../ConnectorConfig.java, SourceConnectorConfig.java,
SinkConnectorConfig.java, TopicCreationConfig.java.
"""

import re
from collections.abc import Mapping
from typing import Final

from coordinator_sim.connect.settings.config_def import (
    ConfigDef,
    ConfigInput,
    ConfigKey,
    ConfigValue,
    Properties,
    Type,
    Validator,
    at_least,
    java_text,
    non_empty,
    one_of,
    parse_type,
    plain_name,
    regex,
    unique_aliases,
)

NAME: Final = "name"
CONNECTOR_CLASS: Final = "connector.class"
TASKS_MAX: Final = "tasks.max"
TASKS_MAX_ENFORCE: Final = "tasks.max.enforce"
KEY_CONVERTER: Final = "key.converter"
VALUE_CONVERTER: Final = "value.converter"
HEADER_CONVERTER: Final = "header.converter"
TOPICS: Final = "topics"
TOPICS_REGEX: Final = "topics.regex"
DLQ_TOPIC: Final = "errors.deadletterqueue.topic.name"

_COMMON: Final = "Common"
_ERRORS: Final = "Error Handling"
_EXACTLY_ONCE: Final = "Exactly Once Support"


def _at_least_zero_or_null(name: str, value: ConfigInput) -> str | None:
    return None if value is None else at_least(0)(name, value)


def _key(  # noqa: PLR0913 - a definition has the parts it has
    name: str,
    kind: Type,
    *rest: Validator,
    default: ConfigInput = None,
    importance: str = "LOW",
    group: str = _COMMON,
    order: int,
    width: str = "SHORT",
    title: str,
    about: str,
) -> ConfigKey:
    return ConfigKey(
        name=name,
        type=kind,
        default=default,
        validators=rest,
        importance=importance,
        documentation=about,
        group=group,
        order_in_group=order,
        width=width,
        display_name=title,
    )


_COMMON_KEYS: Final = (
    ConfigKey(
        name=NAME,
        type=Type.STRING,
        validators=(plain_name,),
        documentation="Name of the connector, unique in its cluster.",
        group=_COMMON,
        order_in_group=1,
        width="MEDIUM",
        display_name="Connector name",
    ),
    ConfigKey(
        name=CONNECTOR_CLASS,
        type=Type.STRING,
        documentation="Class of the connector, in full or by an alias.",
        group=_COMMON,
        order_in_group=2,
        width="LONG",
        display_name="Connector class",
    ),
    _key(
        TASKS_MAX,
        Type.INT,
        at_least(1),
        default=1,
        importance="HIGH",
        order=3,
        title="Tasks max",
        about="Most tasks the connector may have.",
    ),
    _key(
        TASKS_MAX_ENFORCE,
        Type.BOOLEAN,
        default=True,
        order=4,
        title="Enforce tasks max",
        about="Whether a connector with more tasks than tasks.max fails.",
    ),
    _key(
        KEY_CONVERTER,
        Type.CLASS,
        order=5,
        title="Key converter class",
        about="Converter of record keys in place of the worker's.",
    ),
    _key(
        VALUE_CONVERTER,
        Type.CLASS,
        order=6,
        title="Value converter class",
        about="Converter of record values in place of the worker's.",
    ),
    _key(
        HEADER_CONVERTER,
        Type.CLASS,
        order=7,
        title="Header converter class",
        about="Converter of record headers in place of the worker's.",
    ),
    _key(
        "transforms",
        Type.LIST,
        unique_aliases,
        default=(),
        group="Transforms",
        order=8,
        width="LONG",
        title="Transforms",
        about="Aliases of the transformations of each record.",
    ),
    _key(
        "predicates",
        Type.LIST,
        unique_aliases,
        default=(),
        group="Predicates",
        order=9,
        width="LONG",
        title="Predicates",
        about="Aliases of the predicates that transformations refer to.",
    ),
    _key(
        "config.action.reload",
        Type.STRING,
        one_of("none", "restart"),
        default="restart",
        order=10,
        width="MEDIUM",
        title="Reload Action",
        about="What follows when a config provider changes a value.",
    ),
)


_ERROR_KEYS: Final = (
    _key(
        "errors.retry.timeout",
        Type.LONG,
        default=0,
        importance="MEDIUM",
        group=_ERRORS,
        order=1,
        width="MEDIUM",
        title="Retry Timeout for Errors",
        about="Longest time in ms that a failed operation is retried; -1 for ever.",
    ),
    _key(
        "errors.retry.delay.max.ms",
        Type.LONG,
        default=60_000,
        importance="MEDIUM",
        group=_ERRORS,
        order=2,
        width="MEDIUM",
        title="Maximum Delay Between Retries for Errors",
        about="Longest time in ms between two retries.",
    ),
    _key(
        "errors.tolerance",
        Type.STRING,
        one_of("none", "all"),
        default="none",
        importance="MEDIUM",
        group=_ERRORS,
        order=3,
        title="Error Tolerance",
        about="none: a failing record fails the task; all: it is skipped.",
    ),
    _key(
        "errors.log.enable",
        Type.BOOLEAN,
        default=False,
        importance="MEDIUM",
        group=_ERRORS,
        order=4,
        title="Log Errors",
        about="Whether tolerated errors are logged.",
    ),
    _key(
        "errors.log.include.messages",
        Type.BOOLEAN,
        default=False,
        importance="MEDIUM",
        group=_ERRORS,
        order=5,
        title="Log Error Details",
        about="Whether the log shows the record that failed.",
    ),
)


_SOURCE_KEYS: Final = (
    _key(
        "topic.creation.groups",
        Type.LIST,
        unique_aliases,
        default=(),
        group="Topic Creation",
        order=1,
        width="LONG",
        title="Topic Creation Groups",
        about="Groups of settings for topics that the connector creates.",
    ),
    _key(
        "exactly.once.support",
        Type.STRING,
        one_of("requested", "required", ignore_case=True),
        default="requested",
        importance="MEDIUM",
        group=_EXACTLY_ONCE,
        order=2,
        title="Exactly once support",
        about="required: refuse a connector that cannot give exactly-once.",
    ),
    _key(
        "transaction.boundary",
        Type.STRING,
        one_of("poll", "interval", "connector", ignore_case=True),
        default="poll",
        importance="MEDIUM",
        group=_EXACTLY_ONCE,
        order=3,
        title="Transaction Boundary",
        about="What ends a transaction of a task.",
    ),
    _key(
        "transaction.boundary.interval.ms",
        Type.LONG,
        _at_least_zero_or_null,
        group=_EXACTLY_ONCE,
        order=4,
        title="Transaction boundary interval",
        about="Length in ms of transactions that end by time.",
    ),
    _key(
        "offsets.storage.topic",
        Type.STRING,
        non_empty,
        group="offsets.topic",
        order=1,
        width="LONG",
        title="Offsets topic",
        about="Offsets topic of this connector in place of the worker's.",
    ),
)


_SINK_KEYS: Final = (
    _key(
        TOPICS,
        Type.LIST,
        default=(),
        importance="HIGH",
        order=4,
        width="LONG",
        title="Topics",
        about="Topics to consume.",
    ),
    _key(
        TOPICS_REGEX,
        Type.STRING,
        regex,
        default="",
        importance="HIGH",
        order=4,
        width="LONG",
        title="Topics regex",
        about="Pattern of the topics to consume; excludes topics.",
    ),
    _key(
        DLQ_TOPIC,
        Type.STRING,
        default="",
        importance="MEDIUM",
        group=_ERRORS,
        order=6,
        width="MEDIUM",
        title="Dead Letter Queue Topic Name",
        about="Topic for records that failed; empty for none.",
    ),
    _key(
        "errors.deadletterqueue.topic.replication.factor",
        Type.SHORT,
        default=3,
        importance="MEDIUM",
        group=_ERRORS,
        order=7,
        width="MEDIUM",
        title="Dead Letter Queue Topic Replication Factor",
        about="Replication factor of that topic when it is created.",
    ),
    _key(
        "errors.deadletterqueue.context.headers.enable",
        Type.BOOLEAN,
        default=False,
        importance="MEDIUM",
        group=_ERRORS,
        order=8,
        width="MEDIUM",
        title="Enable Error Context Headers",
        about="Whether headers of such records say what failed.",
    ),
)


CONNECTOR_CONFIG: Final = ConfigDef((*_COMMON_KEYS, *_ERROR_KEYS))
"""What sources and sinks share. DEVIATION: the documentation texts are not Kafka's own."""
SOURCE_CONFIG: Final = CONNECTOR_CONFIG.with_keys(_SOURCE_KEYS)
SINK_CONFIG: Final = CONNECTOR_CONFIG.with_keys(_SINK_KEYS)


def check_sink_topics(props: Properties, found: Mapping[str, ConfigValue]) -> None:
    """Add what is wrong among a sink's topics to what was found of each setting.

    Args:
        props: The connector's settings.
        found: By setting; of a sink, so its topic settings are there.

    Source: SinkConnectorConfig.validate.
    """
    topics, pattern = (props.get(TOPICS) or "").strip(), (props.get(TOPICS_REGEX) or "").strip()
    dead_letters = (props.get(DLQ_TOPIC) or "").strip()
    if topics and pattern:
        message = f"{TOPICS} and {TOPICS_REGEX} are mutually exclusive options, but both are set."
    elif not topics and not pattern:
        message = f"Must configure one of {TOPICS} or {TOPICS_REGEX}"
    else:
        message = ""
    if message:
        found[TOPICS].errors.append(message)
        found[TOPICS_REGEX].errors.append(message)
    if not dead_letters:
        return
    listed = tuple(dict.fromkeys(topic for topic in _topics(topics) if topic))
    if dead_letters in listed:
        found[TOPICS].errors.append(
            f"The DLQ topic '{dead_letters}' may not be included in the list of topics "
            f"('{TOPICS}={java_text(listed)}') consumed by the connector"
        )
    if pattern and not found[TOPICS_REGEX].errors and re.fullmatch(pattern, dead_letters):
        found[TOPICS_REGEX].errors.append(
            f"The DLQ topic '{dead_letters}' may not be matched by the regex for the topics "
            f"('{TOPICS_REGEX}={pattern}') consumed by the connector"
        )


def _topics(text: str) -> tuple[str, ...]:
    parsed = parse_type(TOPICS, text, Type.LIST)
    return parsed if isinstance(parsed, tuple) else ()


def must_extend(super_class: str, *, is_interface: bool, accepted: frozenset[str]) -> Validator:
    """Only classes of one kind; null passes, for the class was not found at all.

    Args:
        super_class: The simple name of what they extend.
        is_interface: Whether that is an interface.
        accepted: The full names of the classes that do.

    Source: Utils.ensureConcreteSubclass.
    """
    verb, what = ("implement", "interface") if is_interface else ("extend", "class")

    def validate(name: str, value: ConfigInput) -> str | None:  # noqa: ARG001 - Kafka's message does not name the setting
        if value is None or value in accepted:
            return None
        return f"Class class {java_text(value)} does not {verb} the {super_class} {what}"

    return validate
