"""Settings that every connector has, and the constraints among them.

The definitions are rows of `tables`. Elsewhere: settings that a connector class defines itself
(its manifest), and `validation`.

Source: kafka trunk, connect/runtime/.../ConnectorConfig.java, SourceConnectorConfig.java,
SinkConnectorConfig.java, TopicCreationConfig.java.
"""

import re
from collections.abc import Mapping
from typing import Final

from coordinator_sim.connect.settings.config_def import (
    ConfigDef,
    ConfigInput,
    ConfigValue,
    Properties,
    Type,
    Validator,
    java_text,
    parse_type,
)
from coordinator_sim.connect.settings.setting_rows import keys_in

CONNECTOR_CLASS: Final = "connector.class"
KEY_CONVERTER: Final = "key.converter"
VALUE_CONVERTER: Final = "value.converter"
HEADER_CONVERTER: Final = "header.converter"
TOPICS: Final = "topics"
TOPICS_REGEX: Final = "topics.regex"
DLQ_TOPIC: Final = "errors.deadletterqueue.topic.name"

CONNECTOR_CONFIG: Final = ConfigDef(keys_in("connector"))
"""Settings that sources and sinks share. DEVIATION: the documentation texts are not Kafka's own."""
SOURCE_CONFIG: Final = CONNECTOR_CONFIG.with_keys(keys_in("source"))
SINK_CONFIG: Final = CONNECTOR_CONFIG.with_keys(keys_in("sink"))


def check_sink_topics(props: Properties, found: Mapping[str, ConfigValue]) -> None:
    """Add errors among a sink's topics to the results of each setting.

    Args:
        props: The connector's settings.
        found: Results by setting of a sink, so its topic settings are included.

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
    """Accept only classes of one kind; null passes, because the class was not found at all.

    Args:
        super_class: Simple name of the class or interface to extend.
        is_interface: Whether that is an interface.
        accepted: Full names of the classes that extend it.

    Source: Utils.ensureConcreteSubclass.
    """
    verb, what = ("implement", "interface") if is_interface else ("extend", "class")

    def validate(name: str, value: ConfigInput) -> str | None:  # noqa: ARG001 - Kafka's message does not name the setting
        if value is None or value in accepted:
            return None
        return f"Class class {java_text(value)} does not {verb} the {super_class} {what}"

    return validate
