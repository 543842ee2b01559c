"""Parts of a log line around its message: time, level, logger, prefixes.

Layouts are recognised by their parts, found anywhere in the head of the line, because pasted and
collected logs put other text before and after them. The meaning of messages is not known here.
"""

import re
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.errors import UNREADABLE_JSON
from coordinator_sim.logtext.reading.instants import Instant, InstantReader, from_number
from coordinator_sim.logtext.reading.text import clean

_DEFAULT: Final = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) +"
)
_LEVEL: Final = re.compile(
    r"(?<![\w.$])(TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|SEVERE|FINEST|FINER|FINE|CONFIG)"
    r"(?![\w.])"
)
NATIVE: Final = re.compile(r"(?:[A-Za-z][\w.-]*\s*\| |\[[^\]\s]+\] )?%(\d)\|(\d{9,11})\.(\d{3})\|")
"""The head of a line of librdkafka, also behind the name of a container or a pod."""
_TAILS: Final = (" (kafka.", " (org.apache.", " | kafka.", " | org.apache.", " [org.apache.")
_TAILS_MORE: Final = (" [kafka.", " (o.a.k.")
_TAIL_PARTS: Final = re.compile(r"\s*(?:\(|\[|\| )([\w.$]+)(:\d+)?[\])]?(.*)$", re.DOTALL)
_HUAWEI: Final = re.compile(r"\s*\|\s*\[([^\]]*)\]\s*\|\s*")
_SPRING: Final = re.compile(r"\s+\d+ --- \[([^\]]*)\]\s+(\S+)\s+: ")
_CATEGORY: Final = re.compile(r"\]\s*\[category=([\w.$]+)\]\s*")
_SHORT: Final = re.compile(r"\s+([A-Za-z][\w.$]*)(?::(\d+))? - ")
_SHORT_COLON: Final = re.compile(r"\]?\s+([a-z][\w$]*(?:\.[\w$]+)+): ")
_THREADED: Final = re.compile(r"\s+\[[^\]=]*\]\s+([a-z][\w$]*(?:\.[\w$]+)+)(?: -|:) ")
_DEBEZIUM: Final = re.compile(r"\s+[^|\s\[]*\|[^|\[]*\|[^\s\[]*\s+")
_PYTHON_LOGGER: Final = re.compile(
    r"(?:- (?=[\w.]+ - $)|\s(?=(?:aio)?kafka\.))([\w.]+)(?: - |\s+\[?)$"
)
_PYTHON_DEFAULT: Final = re.compile(r":([A-Za-z_][\w.]*):(?=\S)")
_CONTEXT: Final = re.compile(r"\[[^\]\s|]+\|[^\]]*\] ")
_COMPOSE: Final = re.compile(r"^[A-Za-z][\w.-]*\s*\| ")
_CARRIER: Final = re.compile(r"(?:[A-Za-z][\w.-]*\s*\| |\S+ std(?:out|err) F )(?=\{)")
"""What Docker Compose, or a container runtime of Kubernetes, writes before a line of JSON."""
_EPOCH: Final = re.compile(r"\[?(\d{13}|\d{10})(?:\.(\d{3}))?\b")
_TEN: Final = 10
"""Digits of epoch seconds between the years 2001 and 2286."""
_HEAD_LENGTH: Final = 240
_NANOS_END: Final = 1_000_000_000
_SECONDS_END: Final = 253_402_300_800
"""The year 10000."""
_SYSLOG_LEVELS: Final = {"3": "ERROR", "4": "WARN", "5": "INFO", "6": "INFO", "7": "DEBUG"}

_JSON_MESSAGE: Final = (
    *("message", "msg", "log", "short_message", "textpayload", "body", "line", "content"),
    *("_raw", "event.original", "@message", "logmessage", "logentry", "jsonpayload.message"),
    *("_source.message", "_source.log", "result._raw", "attributes.message", "content.message"),
)
"""Members of entries that hold the message; the first name in lower case.

Those of log4j, logback, Docker, journald, GELF, Google's and Azure's logs, Loki, Elasticsearch,
Splunk, CloudWatch and Datadog.
"""
_JSON_TIME: Final = (
    *("@timestamp", "timestamp", "time", "timemillis", "ts", "@t", "date", "_time"),
    *("__realtime_timestamp", "timegenerated", "timegenerated [utc]", "_source.@timestamp"),
    *("result._time", "attributes.timestamp", "content.timestamp"),
)
_JSON_LEVEL: Final = ("level", "severity", "log.level", "_source.level", "_source.log.level")
_JSON_LOGGER: Final = ("loggername", "logger_name", "logger", "log.logger", "category")
_IN_UTC: Final = ("@message", "@timestamp")
"""Members of an entry of CloudWatch Logs Insights, whose times are in UTC without naming it."""
_COLUMN: Final = re.compile(r"(?:^|[,;\t])\"?([^\",;\t]{10,40}(?:,\d{3})?)\"?(?=[,;\t]|$)")
_DIGITS: Final = re.compile(r"\d{10,19}(?:\.\d+)?")
_MS_DIGITS: Final = 3
BOM: Final = "\ufeff"


class Envelope(Struct, frozen=True):
    """One log line taken apart.

    Args:
        layout: Name of the layout, for the summary.
        instant: Time of the event itself; None when the line has none.
        message: Text of the program, without the logger that follows it in most layouts.
        has_tail: Whether the logger stood after the message, so that the message is whole.
        collector_ts: Time added in front by another program, as text; its zone may differ.
        entry: Members of a JSON line that names a group; None for every other line.
    """

    layout: str
    instant: Instant | None
    message: str
    level: str = ""
    logger: str = ""
    has_tail: bool = False
    collector_ts: str | None = None
    entry: dict[str, object] | None = None


def peel(text: str, reader: InstantReader, *, has_time: bool = False) -> Envelope:
    """Take one cleaned line apart. A line of no known layout is all message.

    Args:
        text: The line.
        reader: Reads its times.
        has_time: Whether a time is known from around the text: one inside a sentence is not its own
            then.

    Source: the default patterns of Kafka's config/log4j.properties, log4j2.yaml and
    connect-log4j.properties; the others are layouts that collectors and frameworks write.
    """
    default = _DEFAULT.match(text)
    if default is not None:
        instant = reader.read_default(default.group(1))
        return _finish("log4j", instant, default.group(2), text, default)
    carrier = _CARRIER.match(text)
    if carrier is not None or text.startswith(("{", "[{")):
        envelope = _peel_json(text[carrier.end() if carrier else 0 :], reader)
        if envelope is not None:
            return envelope
    native = NATIVE.match(text)
    if native is not None:
        instant = from_number(int(native.group(2) + native.group(3)))
        level = _SYSLOG_LEVELS.get(native.group(1), "")
        return Envelope("librdkafka", instant, text[native.end() :], level)
    return _peel_text(text, reader, has_time=has_time)


def _peel_text(text: str, reader: InstantReader, *, has_time: bool) -> Envelope:
    level = _level_after_time(text, reader)
    if level is None:
        head_instants = reader.find_all(text[:_HEAD_LENGTH])
        within = len("[") if has_time else _HEAD_LENGTH // 4
        leading = [one for one in head_instants if one.start <= within]
        first = leading[0] if leading else None
        message = text[first.end :].lstrip(" ]|-") if first is not None else text
        first = first or (None if has_time else _time_of_column(text, reader))
        message, logger, _rest = _split_tail(message)
        return Envelope("bare", first, message, "", logger, bool(logger))
    instants = reader.find_all(text[: level.start()])
    instant = instants[-1] if instants else _epoch_before(text, level)
    collector = text[instants[0].start : instants[0].end] if len(instants) > 1 else None
    layout = _layout_before(text, instant, level, collector)
    envelope = _finish(layout, instant, level.group(1), text, level)
    if collector is None:
        return envelope
    return msgspec.structs.replace(envelope, collector_ts=collector)


def _time_of_column(text: str, reader: InstantReader) -> Instant | None:
    """Return the time that is a column of its own in a row of a table without headings."""
    for found in _COLUMN.finditer(text):
        if _DIGITS.fullmatch(found[1]):
            return _from_digits(found[1])
        instants = reader.find_all(found[1])
        if instants and instants[0].end - instants[0].start == len(found[1]):
            return instants[0]
    return None


def _epoch_before(text: str, level: re.Match[str]) -> Instant | None:
    """Return the time of a layout that prints milliseconds or seconds since the epoch."""
    number = _EPOCH.match(text, 0, level.start())
    if number is None:
        return None
    whole, millis = number.groups()
    return from_number(int(whole + (millis or "000") if len(whole) == _TEN else whole))


def _level_after_time(text: str, reader: InstantReader) -> re.Match[str] | None:
    """Find the level word; before the only time it belongs to a two-line layout."""
    level = _LEVEL.search(text, 0, _HEAD_LENGTH)
    if level is None or reader.find_all(text[: level.start()]):
        return level
    is_first = text.startswith(level.group(1)) or _EPOCH.match(text) is not None
    return level if is_first and not reader.find_all(text[:_HEAD_LENGTH]) else None


def _layout_before(
    text: str, instant: Instant | None, level: re.Match[str], collector: str | None
) -> str:
    """Return the layout, as far as the text up to the level determines it."""
    if instant is None:
        return "jul"
    if collector is not None:
        return "dual-ts"
    if _COMPOSE.match(text):
        return "compose"
    between = text[instant.end : level.start()]
    if between == "][":
        return "netcracker"
    if between.startswith("]"):
        return "log4j"
    if " | " in between:
        return "huawei"
    return "python" if _PYTHON_LOGGER.search(text[: level.start()]) else "strimzi"


def _finish(
    layout: str, instant: Instant | None, level: str, text: str, head: re.Match[str]
) -> Envelope:
    """Split the text after the level into logger and message."""
    logger = ""
    start = head.end()
    if layout == "log4j":
        context = _CONTEXT.match(text, start)
        if context is not None:
            layout, start = "connect-ctx", context.end()
    else:
        layout, logger, start = _after_level(layout, text, start)
    named = _PYTHON_LOGGER.search(text[: head.start()])
    if named is not None:
        logger = named.group(1)
    message, tail_logger, rest = _split_tail(text[start:].lstrip(" :-"))
    if layout == "log4j" and rest:
        layout = "cfk" if " - " in rest else "csv" if rest.startswith(",") else layout
    elif layout == "strimzi" and not tail_logger and not logger:
        layout = "plain"
    return Envelope(layout, instant, message, level, tail_logger or logger, bool(tail_logger))


_AFTER_LEVEL: Final = (
    ("huawei", _HUAWEI, 0),
    ("spring", _SPRING, 2),
    ("netcracker", _CATEGORY, 1),
    ("debezium", _DEBEZIUM, 0),
    ("short", _SHORT, 1),
    ("short", _SHORT_COLON, 1),
    ("short", _THREADED, 1),
    ("python", _PYTHON_DEFAULT, 1),
)


def _after_level(layout: str, text: str, start: int) -> tuple[str, str, int]:
    """Return layout, logger and start of the message, when more than a blank follows the level."""
    for name, pattern, group in _AFTER_LEVEL:
        match = pattern.match(text, start)
        if match is not None:
            kept = layout if layout in ("compose", "dual-ts") else name
            return kept, match.group(group) if group else "", match.end()
    return layout, "", start


def _split_tail(message: str) -> tuple[str, str, str]:
    """Return the message, the logger after it (empty when missing), and the text after that."""
    at = max(map(message.rfind, _TAILS))
    if at < 0:
        at = max(map(message.rfind, _TAILS_MORE))
    if at < 0:
        return message, "", ""
    parts = _TAIL_PARTS.match(message, at)
    if parts is None:
        return message, "", ""
    return message[:at].rstrip(), parts.group(1), parts.group(3)


def unwrapped(text: str) -> str:
    """Return the message of a cleaned line of JSON; another line as it is."""
    carrier = _CARRIER.match(text)
    if carrier is None and not text.startswith("{"):
        return text
    try:
        entry = entry_of(text[carrier.end() if carrier else 0 :])
    except UNREADABLE_JSON:
        return text
    return text if entry is None else _message_of(entry) or text


def entry_of(text: str) -> dict[str, object] | None:
    """Return an entry of a log store as its members; None for JSON without a message.

    The outermost names are there as written, and in lower case. A list of fields and values, as
    `aws logs get-query-results` prints it, counts as the object that it describes.

    Raises:
        msgspec.DecodeError: The text is no JSON, and so for `UNREADABLE_JSON`.
    """
    entry = msgspec.json.decode(text)
    if isinstance(entry, list):
        pairs = [each for each in entry if isinstance(each, dict) and "field" in each]
        entry = {str(each["field"]): each.get("value") for each in pairs}
    if not isinstance(entry, dict):
        return None
    entry |= {name.lower(): value for name, value in entry.items()}
    return None if _message_of(entry) is None else entry


def _message_of(entry: dict[str, object]) -> str | None:
    texts = (_first(entry, (name,)) for name in _JSON_MESSAGE)
    return next((text for text in texts if isinstance(text, str)), None)


def is_heading(names: list[str]) -> bool:
    """Whether names are the heading of a table that has a column of messages, among others."""
    known = {name.strip(BOM).strip().lower() for name in names}
    return len(known) > 1 and not known.isdisjoint(_JSON_MESSAGE)


def _peel_json(text: str, reader: InstantReader) -> Envelope | None:
    try:
        entry = entry_of(text)
    except UNREADABLE_JSON:
        return None
    if entry is None:
        return None
    outer = _json_instant(entry, reader)
    level = str(_first(entry, _JSON_LEVEL) or "").upper()
    logger = str(_first(entry, _JSON_LOGGER) or "")
    inner = peel(clean(_message_of(entry) or ""), reader, has_time=outer is not None)
    if inner.instant is not None:
        collector = _first(entry, _JSON_TIME)
        return msgspec.structs.replace(
            inner, layout="json", collector_ts=None if collector is None else str(collector)
        )
    extra = entry.get("extra")
    members = extra if isinstance(extra, dict) else entry
    return Envelope(
        "json",
        outer,
        inner.message,
        inner.level or level,
        inner.logger or logger,
        has_tail=True,
        entry=members if "groupId" in members else None,
    )


def _json_instant(entry: dict[str, object], reader: InstantReader) -> Instant | None:
    exact = _log4j_instant(entry.get("instant"))
    if exact is not None:
        return exact
    value = _first(entry, _JSON_TIME)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return from_number(value)
    if isinstance(value, str):
        if _DIGITS.fullmatch(value):
            return _from_digits(value)
        found = reader.find_all(f"{value}Z" if entry.keys() >= set(_IN_UTC) else value)
        return found[0] if found else None
    return None


def _from_digits(text: str) -> Instant | None:
    """Return seconds, milliseconds, microseconds or nanoseconds since the epoch."""
    whole, _, fraction = text.partition(".")
    ts_us = int((whole + fraction).ljust(_TEN + 6, "0")[: _TEN + 6])
    digits = len(whole) + len(fraction) - _TEN
    err_us = 1_000_000 if digits == 0 else 1_000 if digits <= _MS_DIGITS else 1
    return Instant(ts_us, err_us, zoned=True)


def _log4j_instant(parts: object) -> Instant | None:
    if not isinstance(parts, dict):
        return None
    seconds, nanos = parts.get("epochSecond"), parts.get("nanoOfSecond", 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        return None
    if not 0 <= seconds < _SECONDS_END or not 0 <= nanos < _NANOS_END:
        return None
    return Instant(seconds * 1_000_000 + nanos // 1_000, 1, zoned=True)


def _first(entry: dict[str, object], names: tuple[str, ...]) -> object | None:
    """Return the first present member of the names, written flat or nested by dots."""
    for name in names:
        value: object | None = entry.get(name)
        if value is None and "." in name:
            value = entry
            for part in name.split("."):
                value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None
