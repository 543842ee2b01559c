"""Strips everything around a log line from lines as people paste them.

Meaning is not known here: layouts are in `envelopes`, messages in `messages`.
"""

import re
from typing import Final

_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07)")
_JUNK: Final = str.maketrans("", "", "\x00\r\n\ufeff\u200b")
_LEADING: Final = re.compile(r"^(?:[\s>*#│┃║▏▌`]|\"(?=\[?\d))+")
_TRAILING: Final = ' \t\v\f│┃║`"'
_TRAILING_MARKS: Final = ("**", " /", " \\")
"""Markdown: end of emphasis, line breaks."""
_STACK: Final = re.compile(
    r"^\s+at |^\s*Caused by:|^\s*Suppressed:|^\s+\.\.\. \d+ (?:more|common)"
    r"|^[\w.$]+(?:Exception|Error)(?::|$)"
)
_EXCEPTION: Final = re.compile(r"^[\w.$]+(?:Exception|Error)(?::|\s*$)")
_DIGITS: Final = re.compile(r"\d+")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NAMED: Final = re.compile(r"((?:[Gg]roup|[Mm]ember|GroupId|MemberId)[ =])[^\s\])]+")
_PATTERN_LENGTH: Final = 100
TOKENS: Final = (
    *("oordinator", "groupId=", "GroupMetadata", "Metadata Manager on", "old generation"),
    *("DistributedHerder", "Loaded member", "[thrd:", "kafkajs", " group "),
    *(", leaving group",),
    *("Task threw an uncaught", "Config values:", "stream-thread [", "stream-client ["),
)
"""Texts of which one is in each line of a coordinator or a client, but for some about loading."""


def has_token(line: str) -> bool:
    """Whether a line may be a coordinator's or a client's: one cheap test for every line."""
    for token in TOKENS:
        if token in line:
            return True
    return "__consumer_offsets" in line and ("oading" in line or "to load" in line)


def clean(line: str) -> str:
    """Return the line without terminal codes, borders, quoting marks and surrounding blanks.

    Back-ticks inside the line stay: Kafka writes some of its own.
    """
    text = line.rstrip()
    if text.startswith("[") and text.endswith(")") and text.isprintable():
        return text
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = _LEADING.sub("", text.translate(_JUNK)).rstrip(_TRAILING)
    while text.endswith(_TRAILING_MARKS):
        text = text[:-2].rstrip(_TRAILING)
    return text


def is_stack_trace(line: str) -> bool:
    """Whether a line continues an exception that the line before it reported."""
    return _STACK.match(line) is not None


def is_exception(line: str) -> bool:
    """Whether a line begins an exception: its class, and usually its message."""
    return _EXCEPTION.match(line) is not None


def is_open(text: str) -> bool:
    """Whether a line breaks off inside parentheses, brackets or a shortened word.

    A cleaned line is expected. A wrapped line and one cut at the screen's edge look alike here.
    """
    if "…" in text:
        return True
    return text.count("(") > text.count(")") or text.count("[") > text.count("]")


def pattern_of(message: str) -> str:
    """Return a message with ids and numbers replaced by signs, to count similar ones together."""
    text = _NAMED.sub(r"\1{}", _UUID.sub("{}", message[: 10 * _PATTERN_LENGTH]))
    return _DIGITS.sub("#", text)[:_PATTERN_LENGTH]
