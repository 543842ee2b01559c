"""Settings that clients, workers and brokers print: a header, then a setting a line.

Loggers write a block as one record. Collectors may make a record of each of its lines, with a
prefix, or keep the whole block in one.

Source: kafka 4.4, AbstractConfig.logAll, which sorts the settings by name.
"""

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.logtext.reading.envelopes import unwrapped
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.printed_settings import BLOCK, KEPT, SETTINGS

MARK: Final = "Config values:"
_HEADER: Final = re.compile(r"\b((?:Consumer|Distributed|Streams|Kafka)Config) values:")
_NAME: Final = r"[a-z][\w.-]{0,80}"
_SETTING: Final = re.compile(rf"(?<!\S)({_NAME}) =(?: (.*))?$")
_IN_ONE_LINE: Final = re.compile(
    rf"(?<!\S)({_NAME}) = (.*?)(?=\s{{1,8}}(?:{_NAME} = |\(\w)|\Z)", re.DOTALL
)
_LEVEL: Final = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR)\b")
_LAST: Final = re.compile(r"Config(?::\d{1,6})?\)$")
_NOTHING: Final = frozenset({"", "null"})


class Block(Struct, frozen=True):
    """A block whose lines are being read.

    Args:
        event: Its event, with the settings so far that are kept; None where lines of another
            block are among its own.
        last: Name of its last setting.
    """

    event: TraceEvent | None
    last: str = ""


def begun(text: str, columns: dict[str, object]) -> Block | None:
    """Return the block that a cleaned line begins, with what it holds of it; None for none.

    Args:
        text: The line.
        columns: Columns of the line's event.
    """
    message = unwrapped(text)
    header = _HEADER.search(message)
    if header is None:
        return None
    found = [(name, text.strip()) for name, text in _IN_ONE_LINE.findall(message, header.end())]
    kept = {name: value for name, value in found if name in KEPT}
    attrs = {"sign": SETTINGS, BLOCK: header[1], **kept}
    event = TraceEvent(event=Event.LIFECYCLE, attrs=attrs, **columns)  # type: ignore[arg-type]
    return Block(event, found[-1][0] if found else "")


def continued(block: Block, text: str) -> Block | None:
    """Return a block with the setting of a further cleaned line; None where that is no setting."""
    text = unwrapped(text).strip()
    found = _SETTING.search(text)
    if found is None or _LEVEL.search(text, 0, found.start()):
        return None
    name, value = found[1], found[2] or ""
    event = block.event if name > block.last else None
    if event is not None and name in KEPT:
        event = replace(event, attrs=event.attrs | {name: value})
    return Block(event, name)


def is_end(text: str) -> bool:
    """Whether a cleaned line is the logger's name, which ends a block in most layouts."""
    return _LAST.search(unwrapped(text)) is not None


def ended(block: Block) -> TraceEvent | None:
    """Return the event of a block; None where it names no group, and is no broker's."""
    event = block.event
    if event is None:
        return None
    attrs = event.attrs
    told = {name: value for name, value in attrs.items() if value not in _NOTHING}
    kind = told[BLOCK]
    if kind == "KafkaConfig":
        number = told.get("node.id", told.get("broker.id", ""))
        broker_id = int(number) if number.isdecimal() else None
        text = f"broker {number} printed its settings"
        return replace(
            event, attrs=told, source=Source.BROKER_LOG, broker_id=broker_id, reason_text=text
        )
    group_id = told.get("application.id" if kind == "StreamsConfig" else "group.id")
    if group_id is None:
        return None
    is_worker = kind == "DistributedConfig"
    return replace(
        event,
        attrs=told,
        source=Source.CONNECT_LOG if is_worker else Source.CONSUMER_LOG,
        protocol_type="connect" if is_worker else "consumer",
        group_id=group_id,
        client_id=told.get("client.id"),
        group_instance_id=told.get("group.instance.id"),
    )
