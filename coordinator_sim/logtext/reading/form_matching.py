"""Reads the lines of known forms, all of a block at a time, into the columns of a batch."""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coordinator_sim.logtext.reading.instants import InstantReader
from coordinator_sim.logtext.reading.line_blocks import LineBlock, Places
from coordinator_sim.logtext.reading.line_forms import (
    FREE_TEXT,
    HEAD_LENGTH,
    NULLS,
    NUMBER_DIGITS,
    PLAIN_TEXT,
    TIME_PLACE,
    WORD_TEXT,
    Form,
    Shape,
    Span,
)

if TYPE_CHECKING:
    import pyarrow as pa

Flags = NDArray[np.bool_]
_ZERO: Final = ord("0")
_NINE: Final = ord("9")
_TIME: Final = "2024-05-06 12:00:00,000"
_DIGITS: Final = tuple(place for place, sign in enumerate(_TIME) if sign.isdigit())
_SIGNS: Final = tuple(place for place, sign in enumerate(_TIME) if not sign.isdigit())
_MINUTE_DIGITS: Final = 12
"""Digits of a time up to its minutes."""
_PER_HUNDRED: Final = 100
_MINUTE_US: Final = 60_000_000
_LAST_MINUTE: Final = 59
_HEAD_STOPS: Final = len("[ ,")
"""Characters of a line's head that are not plain."""
_WORD: Final = 8
_FULL_STOP: Final = ord(".")


class FormRows(Struct, frozen=True):
    """The lines of one form in a block.

    Args:
        lines: Places of the lines in the block, in order.
        begins: Where each part of the form begins, a row for each part.
        ends: Where each part ends.
    """

    form: Form
    lines: Places
    begins: tuple[Places, ...]
    ends: tuple[Places, ...]

    def span(self, span: Span) -> tuple[Places, Places]:
        """Return where a piece of the lines begins and ends."""
        end = self.ends[span.last]
        if span.last_offset is not None:
            end = self.begins[span.last] + span.last_offset
        return self.begins[span.first] + span.first_offset, end

    def where(self, kept: Flags) -> "FormRows":
        """Return some of the lines."""
        begins = tuple(begin[kept] for begin in self.begins)
        return FormRows(self.form, self.lines[kept], begins, tuple(end[kept] for end in self.ends))


def match_forms(block: LineBlock, forms: Sequence[Form]) -> list[FormRows]:
    """Return the lines of each form; a line is of one form at most."""
    found: list[FormRows] = []
    if not forms:
        return found
    left = np.flatnonzero(block.ends - block.starts > HEAD_LENGTH)
    heads: dict[tuple[str, Shape], tuple[Places, Places, Places]] = {}
    taken = np.zeros(len(block), np.bool_)
    for form in forms:
        head = (form.literals[0], form.shapes[0])
        if head not in heads:
            heads[head] = _after_first_value(block, form, left)
        lines, ends, stops = heads[head]
        fits = _begins(block, ends, form.literals[1]) & ~taken[lines]
        rows = _rows(block, form, lines[fits], stops[fits])
        if len(rows.lines):
            taken[rows.lines] = True
            found.append(rows)
    return found


def _after_first_value(
    block: LineBlock, form: Form, lines: Places
) -> tuple[Places, Places, Places]:
    """Return the lines that begin like a form, where their first values end, and those stops."""
    begins = block.starts[lines] + HEAD_LENGTH
    lines = lines[has_text(block, begins, form.literals[0])]
    stops = block.first_stops[lines] + _HEAD_STOPS + _stop_count(form.literals[0])
    return lines, _value_ends(block, form, 0, lines, stops), stops


def _rows(block: LineBlock, form: Form, lines: Places, stops: Places) -> FormRows:
    """Return the lines that are of the form, of some that begin like it.

    Args:
        block: The lines of the block.
        form: A form.
        lines: Places of the lines.
        stops: Number of the stop behind the first value of each.
    """
    begins: list[Places] = [block.starts[lines] + HEAD_LENGTH]
    ends: list[Places] = [begins[0] + len(form.literals[0])]

    def keep(fits: Flags) -> None:
        nonlocal lines, stops
        if not fits.all():
            lines, stops = lines[fits], stops[fits]
            for column in (begins, ends):
                column[:] = [places[fits] for places in column]

    for place, literal in enumerate(form.literals[1:]):
        begins.append(ends[-1])
        ends.append(_value_ends(block, form, place, lines, stops))
        keep((ends[-1] > begins[-1]) & (ends[-1] + len(literal) <= block.ends[lines]))
        keep(has_text(block, ends[-1], literal))
        keep(_has_shape(block, form, place, begins[-1], ends[-1]))
        begins.append(ends[-1])
        ends.append(begins[-1] + len(literal))
        stops = stops + _stop_count(literal)
    keep(ends[-1] == block.ends[lines])
    return FormRows(form, lines, tuple(begins), tuple(ends))


@cache
def _stop_count(text: str) -> int:
    """Return the number of characters that are not plain."""
    return len(text) - sum(map(len, PLAIN_TEXT.findall(text)))


def _value_ends(block: LineBlock, form: Form, place: int, lines: Places, stops: Places) -> Places:
    """Return where values end whose first stops are given, if they are followed as they must be."""
    behind = form.literals[place + 1]
    if form.shapes[place] is Shape.FREE:
        return block.ends[lines] - len(behind)
    plain = PLAIN_TEXT.match(behind)
    at = np.minimum(stops, len(block.plain_stops) - 1)
    return block.plain_stops[at] - (0 if plain is None else plain.end())


def _begins(block: LineBlock, places: Places, text: str) -> Flags:
    """Whether the block has the first characters of a text at each place."""
    head = text[:_WORD].encode()
    word = np.uint64(int.from_bytes(head.ljust(_WORD, b"\0"), "little"))
    found = block.words[places]
    if len(head) < _WORD:
        found &= np.uint64((1 << 8 * len(head)) - 1)
    fits: Flags = found == word
    return fits


def has_text(block: LineBlock, places: Places, text: str) -> Flags:
    """Whether the block has a text at each place."""
    wanted = text.encode()
    if len(wanted) <= _WORD:
        return _begins(block, places, text)
    count = -(-len(wanted) // _WORD)
    rest = _WORD * count - len(wanted)
    found = block.pieces(count)[places].view(np.uint64).reshape(len(places), count)
    words = np.frombuffer(wanted.ljust(_WORD * count, b"\0"), np.uint64)
    fits: Flags = found[:, count - 1] << np.uint64(8 * rest) == words[-1] << np.uint64(8 * rest)
    for at in range(count - 1):
        fits &= found[:, at] == words[at]
    return fits


def _has_shape(block: LineBlock, form: Form, place: int, begins: Places, ends: Places) -> Flags:
    """Whether the texts between the places can be the value of the form at that place."""
    match form.shapes[place]:
        case Shape.NUMBER:
            return numbers(block.codes, begins, ends) >= 0
        case Shape.FREE:
            return _is_harmless(block, form, begins, ends)
        case Shape.WORD:
            return _checked(
                block, begins, ends, lambda text: _is_word(text, is_odd=form.odd[place])
            )
        case _ if not form.odd[place]:
            return np.ones(len(begins), np.bool_)
    full_stop = (block.codes[begins] == _FULL_STOP) | (block.codes[ends - 1] == _FULL_STOP)
    lengths = ends - begins
    is_null = np.zeros(len(begins), np.bool_)
    for text in NULLS:
        at = np.flatnonzero(lengths == len(text))
        is_null[at] = has_text(block, begins[at], text)
    is_usual: Flags = ~full_stop & ~is_null
    return is_usual


def _is_word(text: str, *, is_odd: bool) -> bool:
    return WORD_TEXT.fullmatch(text) is not None and not (is_odd and text in NULLS)


def _is_harmless(block: LineBlock, form: Form, begins: Places, ends: Places) -> Flags:
    """Whether texts are free text, and cannot make another message of their lines."""
    if not block.is_ascii:
        return np.zeros(len(begins), np.bool_)
    before, behind = form.literals[-2], form.literals[-1]
    pattern = _pattern(form.dangers)

    def check(text: str) -> bool:
        is_free = FREE_TEXT.fullmatch(text) is not None
        return is_free and pattern.search(f"{before}{text}{behind}") is None

    return _checked(block, begins, ends, check)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text or r"(?!)")


def _checked(block: LineBlock, begins: Places, ends: Places, check: Any) -> Flags:  # noqa: ANN401
    """Return what a function says of each text; it is asked once about texts that are equal."""
    if not len(begins):
        return np.ones(0, np.bool_)
    encoded = strings(block.codes, begins, ends).dictionary_encode()
    said = np.array([check(text) for text in encoded.dictionary.to_pylist()], np.bool_)
    answers: Flags = said[encoded.indices.to_numpy()]
    return answers


def numbers(codes: NDArray[np.uint8], begins: Places, ends: Places) -> Places:
    """Return the numbers between places; -1 for a text that is no number of up to nine digits."""
    lengths = ends - begins
    found = np.zeros(len(begins), np.int64)
    is_number = (lengths > 0) & (lengths <= NUMBER_DIGITS)
    most = int(lengths[is_number].max(initial=0))
    for at in range(most):
        is_inside = at < lengths
        digits = codes[np.minimum(begins + at, len(codes) - 1)]
        is_number &= ~is_inside | ((digits >= _ZERO) & (digits <= _NINE))
        found = np.where(is_inside, found * 10 + digits - _ZERO, found)
    return np.where(is_number, found, -1)


def strings(codes: NDArray[np.uint8], begins: Places, ends: Places) -> "pa.StringArray":
    """Return the texts between places; null where both are -1."""
    import pyarrow as pa

    count = len(begins)
    is_null = begins < 0
    null_count = int(is_null.sum())
    if null_count:
        before = np.maximum.accumulate(np.where(is_null, 0, ends))
        begins, ends = np.where(is_null, before, begins), np.where(is_null, before, ends)
    if count and (begins[1:] >= ends[:-1]).all():
        # The texts and what is between them are one array, of which every second one is taken.
        borders = np.empty(2 * count, np.int32)
        borders[0::2], borders[1::2] = begins, ends
        buffers = [None, pa.py_buffer(borders), pa.py_buffer(codes)]
        every = pa.Array.from_buffers(pa.string(), 2 * count - 1, buffers, 0)
        _, offsets, data = every.take(pa.array(np.arange(0, 2 * count - 1, 2))).buffers()
    else:
        lengths = ends - begins
        places = np.zeros(count + 1, np.int32)
        np.cumsum(lengths, out=places[1:])
        sources = np.arange(places[-1]) + np.repeat(begins - places[:-1], lengths)
        offsets, data = pa.py_buffer(places), pa.py_buffer(codes[sources])
    valid = pa.py_buffer(np.packbits(~is_null, bitorder="little")) if null_count else None
    return pa.Array.from_buffers(pa.string(), count, [valid, offsets, data], null_count)


def times(block: LineBlock, lines: Places, reader: InstantReader) -> tuple[Places, Places, Flags]:
    """Return the times of lines of the default layout.

    Returns:
        Microseconds since the epoch, those to add if the clocks had gone back, and whether the
        text is a time at all.
    """
    at = block.starts[lines] + TIME_PLACE
    is_time = block.codes[at - TIME_PLACE] == ord("[")
    for place in _SIGNS:
        is_time &= block.codes[at + place] == ord(_TIME[place])
    minutes = np.zeros(len(lines), np.int64)
    rest = np.zeros(len(lines), np.int64)
    for count, place in enumerate(_DIGITS):
        digit = block.codes[at + place].astype(np.int64) - _ZERO
        is_time &= (digit >= 0) & (digit <= _NINE - _ZERO)
        if count < _MINUTE_DIGITS:
            minutes = minutes * 10 + digit
        else:
            rest = rest * 10 + digit
    minutes[~is_time] = 0
    starts_us, repeats_us, is_minute = _minutes(reader, minutes)
    return starts_us + rest * 1_000, repeats_us, is_time & is_minute


def _minutes(reader: InstantReader, minutes: Places) -> tuple[Places, Places, Flags]:
    """Return when minutes of the form 202405061200 began, their second times, and which are any.

    An hour is read once, by its first and its last minute, unless the clocks changed in between.
    """
    hours, minutes_of_hour = np.divmod(minutes, _PER_HUNDRED)
    distinct, which = np.unique(hours, return_inverse=True)
    firsts = [_minute(reader, hour * _PER_HUNDRED) for hour in distinct.tolist()]
    lasts = [_minute(reader, hour * _PER_HUNDRED + _LAST_MINUTE) for hour in distinct.tolist()]
    is_even = np.array(
        [
            one is not None and (one[0] + _LAST_MINUTE * _MINUTE_US, one[1]) == last
            for one, last in zip(firsts, lasts, strict=True)
        ],
        np.bool_,
    )
    starts_us = np.array([0 if one is None else one[0] for one in firsts], np.int64)[which]
    starts_us += minutes_of_hour * _MINUTE_US
    repeats_us = np.array([0 if one is None else one[1] for one in firsts], np.int64)[which]
    is_minute = np.ones(len(minutes), np.bool_)
    for row in np.flatnonzero(~is_even[which] | (minutes_of_hour > _LAST_MINUTE)).tolist():
        read = _minute(reader, int(minutes[row]))
        is_minute[row] = read is not None
        starts_us[row], repeats_us[row] = read or (0, 0)
    return starts_us, repeats_us, is_minute


def _minute(reader: InstantReader, minute: int) -> tuple[int, int] | None:
    """Return when a minute of the form 202405061200 began, and what to add for its second time."""
    text = f"{minute:012}"
    instant = reader.read_default(
        f"{text[:4]}-{text[4:6]}-{text[6:8]} {text[8:10]}:{text[10:12]}:00,000"
    )
    return None if instant is None else (instant.ts_us, instant.repeat_us)
