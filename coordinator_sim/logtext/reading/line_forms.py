"""Forms of lines, learnt from lines that were read: where values stand, and what becomes of them.

Brokers write most lines in a few forms that differ in their values alone. A form is learnt from one
line by reading the line again with other values: it holds what each column was made of. Lines of a
known form are then read many at a time (`form_matching`), and give what reading them one by one
would give. A line from which no form can be learnt is read one by one, and so are those like it.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC
from enum import Enum, unique
from functools import cache
from itertools import combinations, pairwise
from operator import add
from typing import Any, Final

import msgspec
from msgspec import Struct

from coordinator_sim.logtext.reading.broker_log import BrokerLog
from coordinator_sim.logtext.reading.broker_words import BROKER_ID
from coordinator_sim.logtext.reading.envelopes import peel
from coordinator_sim.logtext.reading.instants import InstantReader
from coordinator_sim.logtext.reading.line_blocks import FREE, PLAIN
from coordinator_sim.logtext.reading.messages import find
from coordinator_sim.logtext.reading.text import has_token
from coordinator_sim.logtext.wordings.catalogue import CATALOGUE
from coordinator_sim.logtext.wordings.reasons import spans_of
from coordinator_sim.logtext.wordings.rows import Row
from coordinator_sim.trace.events import Event, Source, TraceEvent

HEAD: Final = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}(?=\] )")
"""What a line of the default layout begins with, up to its time."""
TIME_PLACE: Final = len("[")
HEAD_LENGTH: Final = len("[2024-05-06 12:00:00,000")
_LONGEST: Final = 8_192
"""Characters of the longest line that a form is learnt from."""
NUMBER_DIGITS: Final = 9
"""Most digits of a number that is read many at a time: all are Kafka's ints."""
PLAIN_TEXT: Final = re.compile(f"[{re.escape(PLAIN.decode())}]+")
WORD_TEXT: Final = re.compile(r"\w+", re.ASCII)
_MOST_WORDS: Final = 3
_NUMBER_TEXT: Final = re.compile(r"[0-9]+")
FREE_TEXT: Final = re.compile(f"[{re.escape(FREE.decode())}]+")
_UNREADY: Final = frozenset({Event.STATIC_REPLACED, Event.LOAD_FAILED, Event.STORE_FAILED})
"""Events that wait for later lines."""
_ROW_NUMBERS: Final = {row.name: number for number, row in enumerate(CATALOGUE)}
_QUIET: Final = "static-no-rebalance"
"""Row whose line changes the event of an earlier one."""
_SHARED: Final = frozenset(
    {
        *("event", "ts_us", "seq", "ts_kind", "ts_err_us", "source", "source_ref", "attrs", "raw"),
        "incarnation",
    }
)
"""Fields of an event that do not follow from the message."""
_TOLD_LATER: Final = "broker_version_range"
NULLS: Final = ("null", "None", "Optional.empty")
"""What Java and Scala print for no value."""


@unique
class Shape(Enum):
    """What the characters of a value may be."""

    NUMBER = "number"
    WORD = "word"
    PLAIN = "plain"
    FREE = "free"


_ODD_VALUES: Final = {Shape.WORD: NULLS, Shape.PLAIN: (*NULLS, "zq.", ".zq")}
_COMMON_VALUES: Final = {
    Shape.WORD: ("Some", "0", "00", "A", "_"),
    Shape.PLAIN: ("Some", "0", "00", "A", "-", "_", "a-b", "/1.2.3.4", "a.b:c@d"),
}


_TEXTS: Final = {
    Shape.NUMBER: _NUMBER_TEXT,
    Shape.WORD: WORD_TEXT,
    Shape.PLAIN: PLAIN_TEXT,
    Shape.FREE: FREE_TEXT,
}


class Span(Struct, frozen=True):
    """A piece of a line that a column holds, from a place in one part of it to one in another.

    Args:
        first: Number of the part in which it begins.
        first_offset: Characters of that part before it.
        last: Number of the part in which it ends.
        last_offset: Characters of that part up to its end; None for all.
    """

    first: int
    first_offset: int
    last: int
    last_offset: int | None

    def of(self, parts: Sequence[str]) -> str:
        """Return the piece of a line of these parts."""
        text = "".join(parts[self.first : self.last + 1])
        behind = 0 if self.last_offset is None else len(parts[self.last]) - self.last_offset
        return text[self.first_offset : len(text) - behind]


Told = Span | str | int | Enum
"""What a column holds: a piece of the line, the number in it, or always the same."""


class Form(Struct, frozen=True):
    """Lines that differ in their values alone.

    Args:
        literals: Texts between the values; one before the first and one behind the last.
        shapes: Shapes of the values, which stand between the literals.
        odd: For each value, whether texts such as `null`, and those with a full stop at an end,
            would mean something else there.
        layout: Name of the layout, for the summary.
        event: Kind of the event that a line gives; None for none.
        texts: Columns that hold text.
        numbers: Columns that hold numbers; a `Span` is a whole value.
        attrs: Attributes.
        source: Source of the event.
        dangers: Pattern of the words with which free text might make another message of a line.
    """

    literals: tuple[str, ...]
    shapes: tuple[Shape, ...]
    odd: tuple[bool, ...]
    layout: str
    event: Event | None
    texts: dict[str, Told]
    numbers: dict[str, Told]
    attrs: dict[str, Told]
    source: Source | None
    dangers: str = ""

    def parts(self, values: Sequence[str]) -> list[str]:
        """Return the parts of a line with these values: literals and values in turn."""
        found = [self.literals[0]]
        for value, literal in zip(values, self.literals[1:], strict=True):
            found += (value, literal)
        return found

    def fits(self, line: str) -> bool:
        """Whether a line has the parts of the form."""
        return _regex(self.literals, self.shapes).fullmatch(line, HEAD_LENGTH) is not None

    def agrees(self, values: Sequence[str], events: Sequence[TraceEvent]) -> bool:
        """Whether reading a line with these values gave what the form says."""
        if self.event is None:
            return not events
        if len(events) != 1:
            return False
        parts = self.parts(values)
        told: dict[str, Any] = {name: _read(each, parts) for name, each in self.texts.items()}
        for name, each in self.numbers.items():
            text = _read(each, parts)
            told[name] = int(text) if isinstance(text, str) else text
        told["attrs"] = {name: _read(each, parts) for name, each in self.attrs.items()}
        (event,) = events
        same = {name: getattr(event, name) for name in _SHARED - {"attrs", "event"}}
        return event == TraceEvent(event=self.event, **told, **same)


@cache
def _regex(literals: tuple[str, ...], shapes: tuple[Shape, ...]) -> re.Pattern[str]:
    values = (f"({_TEXTS[shape].pattern})" for shape in shapes)
    behind = map(re.escape, literals[1:])
    return re.compile(re.escape(literals[0]) + "".join(map(add, values, behind)))


def _read(told: Told, parts: Sequence[str]) -> object:
    return told.of(parts) if isinstance(told, Span) else told


def learn(line: str) -> Form | None:
    """Return the form of a line, without its line end; None when it has none.

    A form is returned only when several lines made of it are read as it says.
    """
    head = HEAD.match(line)
    if (
        head is None
        or len(line) > _LONGEST
        or not line.isascii()
        or not line.isprintable()
        or not line.endswith(")")
    ):
        return None
    found = _spans(line)
    if found is None:
        return None
    row_number, spans = found
    literals, start = [], head.end()
    for first, end in spans:
        literals.append(line[start:first])
        start = end
    literals.append(line[start:])
    if not any(has_token(literal) for literal in literals):
        return None
    values = [line[first:end] for first, end in spans]
    shapes = _shapes(values, literals)
    for each in () if shapes is None else _narrower(shapes, values):
        form = _tried(tuple(literals), each, row_number)
        if form is not None and _is_read_as(form, values):
            return form
    return None


def _narrower(shapes: tuple[Shape, ...], values: Sequence[str]) -> Iterator[tuple[Shape, ...]]:
    """Yield the shapes, then those in which some or all of the words must be words."""
    words = [
        place
        for place, (shape, value) in enumerate(zip(shapes, values, strict=True))
        if shape is Shape.PLAIN and WORD_TEXT.fullmatch(value)
    ]
    for count in range(min(len(words), _MOST_WORDS) + 1):
        for chosen in combinations(words, count):
            yield tuple(
                Shape.WORD if place in chosen else shape for place, shape in enumerate(shapes)
            )


def _spans(line: str) -> tuple[int, list[tuple[int, int]]] | None:
    """Return the number of a line's row, and where its values stand; None where no form is."""
    envelope = peel(line, InstantReader(UTC))
    message = envelope.message
    found = find(message)
    # Whether a line without its logger is whole depends on the other lines of its log.
    if not envelope.has_tail or found is None or found[0].name == _QUIET:
        return None
    row, match = found
    start = line.index(message, HEAD_LENGTH)
    spans: set[tuple[int, int]] = set()
    for group, (kind, _) in enumerate(row.kinds, 1):
        first, end = match.span(group)
        if first < 0 or match[group] in NULLS:
            continue
        if kind == "reason":
            spans.update((first + one, first + other) for one, other in spans_of(match[group]))
        else:
            spans.add((first, end))
    prefix = BROKER_ID.search(message)
    if prefix is not None:
        spans.update(span for span in (prefix.span(1), prefix.span(2)) if span[0] >= 0)
    ordered = sorted((start + first, start + end) for first, end in spans)
    is_apart = all(one[1] < other[0] for one, other in pairwise(ordered))
    return (_ROW_NUMBERS[row.name], ordered) if is_apart and ordered else None


def _shapes(values: Sequence[str], literals: Sequence[str]) -> tuple[Shape, ...] | None:
    """Return the widest shape of each value that shows where it ends; None when one has none."""
    shapes = []
    for place, (value, behind) in enumerate(zip(values, literals[1:], strict=True)):
        is_last = place == len(values) - 1
        if value.isdigit() and len(value) <= NUMBER_DIGITS:
            shape = Shape.NUMBER
        elif is_last and " " in value and FREE_TEXT.fullmatch(value):
            shape = Shape.FREE
        elif PLAIN_TEXT.fullmatch(value):
            shape = Shape.PLAIN
        else:
            return None
        if shape is not Shape.FREE and PLAIN_TEXT.fullmatch(behind):
            return None
        shapes.append(shape)
    return tuple(shapes)


@cache
def _tried(literals: tuple[str, ...], shapes: tuple[Shape, ...], row_number: int) -> Form | None:
    """Return the form of these parts, if all sample lines of it are read as the form claims."""
    others = [_missing(literals, row) for row in CATALOGUE[:row_number]]
    own_lead = CATALOGUE[row_number].required[0]
    if _comes_early(literals, shapes, own_lead):
        return None
    for missing in others:
        if missing and all(_may_hold(literals, shapes, text) for text in missing):
            return None
    first = _values(shapes, 1)
    events = _events(literals, first)
    form = None if events is None else _form(literals, shapes, first, events)
    if form is None or not all(_is_read_as(form, _values(shapes, draw)) for draw in (1, 2, 3)):
        return None
    odd = []
    for place, shape in enumerate(shapes):

        def is_same(value: str, place: int = place) -> bool:
            return _is_read_as(form, (*first[:place], value, *first[place + 1 :]))

        if not all(map(is_same, _COMMON_VALUES.get(shape, ()))):
            return None
        odd.append(not all(map(is_same, _ODD_VALUES.get(shape, ()))))
    words = {max(missing, key=len) for missing in others if missing}
    dangers = "|".join(map(re.escape, sorted(words))) if shapes[-1] is Shape.FREE else ""
    return msgspec.structs.replace(form, odd=tuple(odd), dangers=dangers)


def _missing(literals: Sequence[str], row: Row) -> list[str]:
    """Return the texts of another row that the literals do not hold."""
    return [text for text in row.required if not any(text in literal for literal in literals)]


def _comes_early(literals: Sequence[str], shapes: Sequence[Shape], lead: str) -> bool:
    """Whether values before a row's own first words could make them."""
    place = next((n for n, literal in enumerate(literals) if lead in literal), len(shapes))
    before = shapes[:place]
    return any(shape is not Shape.NUMBER for shape in before) and _may_hold(
        literals[: place + 1], before, lead
    )


def _values(shapes: Sequence[Shape], draw: int) -> tuple[str, ...]:
    """Return values of these shapes, none of which is part of another; other ones for each draw."""
    values = []
    for place, shape in enumerate(shapes, 1):
        code = f"{draw}{place:02}"
        match shape:
            case Shape.NUMBER:
                values.append(f"{code}5{draw * place}"[: 3 + draw])
            case Shape.WORD:
                values.append("Zq" * draw + f"{code}z")
            case Shape.PLAIN:
                values.append("zq.-" * draw + f"x{code}_/:@+=#$z")
            case Shape.FREE:
                values.append(f"zq; {code}, why! " * draw + f"{code}z")
    return tuple(values)


def _line(literals: Sequence[str], values: Sequence[str]) -> str:
    inner = "".join(value + literal for value, literal in zip(values, literals[1:], strict=True))
    return f"[2024-05-06 12:00:00,000{literals[0]}{inner}"


def _events(literals: Sequence[str], values: Sequence[str]) -> list[TraceEvent] | None:
    """Return the events of one line that is read alone; None when it was not understood."""
    log = BrokerLog("", UTC)
    events = []
    for event in log.read([_line(literals, values)]):
        if event.event is Event.UNPARSED:
            return None
        attrs = {name: value for name, value in event.attrs.items() if name != _TOLD_LATER}
        events.append(msgspec.structs.replace(event, attrs=attrs))
    return events if log.summary.parsed + log.summary.known else None


def _is_read_as(form: Form, values: Sequence[str]) -> bool:
    events = _events(form.literals, values)
    return events is not None and form.agrees(values, events)


def _form(
    literals: tuple[str, ...],
    shapes: tuple[Shape, ...],
    values: tuple[str, ...],
    events: list[TraceEvent],
) -> Form | None:
    """Return the form that one line suggests; None when its event needs other lines."""
    layout = peel(_line(literals, values), InstantReader(UTC)).layout
    form = Form(literals, shapes, (), layout, None, {}, {}, {}, None)
    if not events:
        return form
    event = events[0]
    needs_cause = event.event is Event.PREPARE_REBALANCE and event.reason_text is None
    if len(events) > 1 or event.event in _UNREADY or needs_cause:
        return None
    parts = form.parts(values)
    texts: dict[str, Told] = {}
    numbers: dict[str, Told] = {}
    for name, value in _columns(event):
        if isinstance(value, Enum):
            texts[name] = value
        elif isinstance(value, str):
            texts[name] = _place(value, parts)
        elif isinstance(value, int):
            place = _place(str(value), parts)
            numbers[name] = value if isinstance(place, str) else place
        else:
            return None
    attrs = {name: _place(value, parts) for name, value in event.attrs.items()}
    told = {"event": event.event, "source": event.source, "texts": texts}
    return msgspec.structs.replace(form, **told, numbers=numbers, attrs=attrs)


def _columns(event: TraceEvent) -> Iterator[tuple[str, object]]:
    for field in msgspec.structs.fields(TraceEvent):
        value = getattr(event, field.name)
        if field.name not in _SHARED and value != field.default:
            yield field.name, value


def _place(value: str, parts: Sequence[str]) -> Span | str:
    """Return where a column's text stands in a line; the text itself when it has no value."""
    line = "".join(parts)
    if not any(part and (part in value or value in part) for part in parts[1::2]):
        return value
    at = line.find(value)
    if at < 0:
        return value
    first, first_offset = _part_at(parts, at)
    last, last_offset = _part_at(parts, at + len(value) - 1)
    is_whole = last_offset + 1 == len(parts[last])
    return Span(first, first_offset, last, None if is_whole else last_offset + 1)


def _part_at(parts: Sequence[str], place: int) -> tuple[int, int]:
    for number, part in enumerate(parts):
        if place < len(part):
            return number, place
        place -= len(part)
    return len(parts) - 1, len(parts[-1])


def _may_hold(literals: Sequence[str], shapes: Sequence[Shape], lead: str) -> bool:
    """Whether some values would make the words of a known message where one of them stands.

    Free text is judged where it is read.
    """
    return any(
        _goes_on(literals, shapes, place, lead, done)
        for place, before in enumerate(literals[:-1])
        for done in range(len(lead))
        if before.endswith(lead[:done])
    )


def _goes_on(
    literals: Sequence[str], shapes: Sequence[Shape], place: int, lead: str, done: int
) -> bool:
    """Whether a value and what is behind it may hold the rest of a text."""
    kind = _NUMBER_TEXT if shapes[place] is Shape.NUMBER else PLAIN_TEXT
    room = kind.match(lead, done)
    if room is None or shapes[place] is Shape.FREE:
        return False
    if room.end() == len(lead):
        return True
    behind = literals[place + 1]
    for end in range(done + 1, room.end() + 1):
        rest = lead[end:]
        if behind.startswith(rest):
            return True
        is_last = place + 1 == len(shapes)
        if is_last or not rest.startswith(behind):
            continue
        if _goes_on(literals, shapes, place + 1, lead, end + len(behind)):
            return True
    return False
