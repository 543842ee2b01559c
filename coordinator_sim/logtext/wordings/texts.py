"""The small language of a row's text, compiled to a pattern that reads and to lines to write.

    Stabilized group {group_id} generation {generation}<0.11-3.9| ({offsets_log})>

`{group_id}` is a value, of a kind in `fields`. `<...>` is a piece that the reader may miss: lines
are found cut off, and in other words at their ends. `<2.8-| ...>` is a piece that only those
releases write, so that it tells the release; with `!` after the releases, a whole line without the
piece is of another one. `<none|...>` is read and never written. Pieces may stand inside pieces.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import InvariantViolation
from coordinator_sim.logtext.wordings.fields import FIELDS, Field
from coordinator_sim.logtext.wordings.releases import ALL, Release, releases
from coordinator_sim.trace.events import TraceEvent


class Value(Struct, frozen=True):
    """A value and the name of its kind."""

    name: str
    field: Field


class Piece(Struct, frozen=True):
    """Part of a text that may be missing.

    Args:
        releases: Set of releases that write it; None for all, with no meaning to the reader.
        is_certain: Whether those releases never leave it out.
    """

    releases: int | None
    is_certain: bool
    nodes: tuple["Node", ...]

    @property
    def tells(self) -> bool:
        """Whether the releases of a line follow from it."""
        return bool(self.releases)


Node = str | Value | Piece
_TOKEN: Final = re.compile(r"<(?:([\w. -]+)(!?)\|)?|>|\{([\w.]+)\}|[^<>{]+")
_FULL_STOP: Final = "."


@cache
def parse(text: str) -> tuple[Node, ...]:
    """Parse the text of a row.

    Raises:
        InvariantViolation: a piece is not closed, or a kind or a release does not exist.
    """
    tokens = _TOKEN.finditer(text)
    nodes = tuple(_nodes(tokens))
    if next(tokens, None) is not None or "".join(m.group() for m in _TOKEN.finditer(text)) != text:
        raise InvariantViolation(f"cannot parse the row {text!r}")
    return nodes


def _nodes(tokens: Iterator[re.Match[str]]) -> Iterator[Node]:
    for token in tokens:
        text, (told, certain, name) = token.group(), token.groups()
        if text == ">":
            return
        if text.startswith("<"):
            known = None if told is None else 0 if told == "none" else releases(told)
            yield Piece(known, bool(certain), tuple(_nodes(tokens)))
        elif name is not None:
            if name not in FIELDS:
                raise InvariantViolation(f"no kind of value is called {name!r}")
            yield Value(name, FIELDS[name])
        else:
            yield text


def searched(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the nodes from the first required one: a message may have other text before."""
    places = (place for place, node in enumerate(nodes) if not isinstance(node, Piece))
    return nodes[next(places, len(nodes)) :]


def read(match: re.Match[str]) -> dict[str, str]:
    """Return the values of a match by the names of their kinds."""
    found = match.groupdict()
    return {kind_of(name): text for name, text in found.items() if text is not None}


def kind_of(group: str) -> str:
    """Return the kind of a group; where a kind comes twice, its second group ends with 2."""
    return group.rstrip("23456789")


def words(nodes: Sequence[Node], release: Release) -> Iterator[str | Field]:
    """Yield the fixed words and the kinds of values of a text, as a release writes it."""
    for node in nodes:
        if isinstance(node, str):
            yield node
        elif isinstance(node, Value):
            yield node.field
        elif node.releases is None or node.releases & release.bit:
            yield from words(node.nodes, release)


def write(parts: Iterable[str | Field], event: TraceEvent, release: Release) -> str:
    """Return the text of an event, of the parts that `words` yields."""
    return "".join(part if isinstance(part, str) else part.text(event, release) for part in parts)


class Pattern:
    """A parsed text as a regular expression.

    Args:
        nodes: Parsed text.
        flags: Flags of the regular expression, beside DOTALL.
        is_telling: Whether each piece that tells releases is a group, named `_0`, `_1` and so on.
    """

    def __init__(self, nodes: Sequence[Node], flags: int = 0, *, is_telling: bool = False) -> None:
        self.telling: list[tuple[Piece, bool]] = []
        """Pieces by the number of their group, each with whether required text follows it."""
        self._is_telling = is_telling
        self._counts: dict[str, int] = {}
        text, is_open = self._sequence(nodes, is_open=False)
        self.regex = re.compile(f"{text}$" if is_open else text, flags | re.DOTALL)

    def releases_of(self, match: re.Match[str] | None, *, is_whole: bool) -> int:
        """Return the set of releases that fit the pieces that a match has and lacks."""
        told = ALL
        for number, (piece, is_inside) in enumerate(self.telling):
            if match is None or piece.releases is None:
                continue
            if match[f"_{number}"] is not None:
                told &= piece.releases
            elif piece.is_certain and (is_whole or is_inside):
                told &= ~piece.releases
        return told

    def _sequence(self, nodes: Sequence[Node], *, is_open: bool) -> tuple[str, bool]:
        """Return the pattern of a text or a piece, and whether its last value is lazy.

        A lazy value takes as little as what follows allows, so something must follow it: required
        text, or pieces that reach to the end of the line.

        Args:
            nodes: Its nodes.
            is_open: Whether a lazy value stands before them.
        """
        out: list[str] = []
        ends_lazily = False
        has_end = not isinstance(nodes[-1], Piece)
        nodes = self._of_use(nodes)
        for place, node in enumerate(nodes):
            following = nodes[place + 1 :]
            if isinstance(node, Piece):
                inner, is_lazy = self._piece(node, following, is_open=is_open or ends_lazily)
                ends_lazily |= is_lazy
                out.append(inner)
            elif has_end and not following and _is_full_stop(node):
                out.append(r"\.?")
            elif isinstance(node, str):
                out.append(re.escape(node))
                is_open = ends_lazily = False
            else:
                out.append(self._value(node))
                if node.field.takes_rest:
                    return "".join(out), False
                is_open, ends_lazily = False, node.field.is_lazy
        return "".join(out), ends_lazily

    def _piece(self, piece: Piece, following: Sequence[Node], *, is_open: bool) -> tuple[str, bool]:
        start = "(?:"
        if self._is_telling and piece.tells:
            start = f"(?P<_{len(self.telling)}>"
            self.telling.append((piece, any(map(_is_required, following))))
        inner, is_lazy = self._sequence(piece.nodes, is_open=False)
        if is_lazy and not following:
            return f"{start}{inner}$)?", False
        if is_open and not is_lazy:
            inner += ".*?"
        return f"{start}{inner})?", is_lazy

    def _value(self, value: Value) -> str:
        """Return the group of a value; the second one of its name in the pattern ends with 2."""
        group = value.field.group(value.name)
        for name in re.findall(r"\(\?P<(\w+)>", group):
            self._counts[name] = count = self._counts.get(name, 0) + 1
            if count > 1:
                group = group.replace(f"(?P<{name}>", f"(?P<{name}{count}>")
        return group

    def _of_use(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the nodes without pieces at the end that tell the reader nothing."""
        while isinstance(last := nodes[-1], Piece) and _is_full_stop(last.nodes[0]):
            nodes = nodes[:-1]
        end = len(nodes)
        while end and isinstance(last := nodes[end - 1], Piece) and not self._tells(last):
            end -= 1
        return nodes if end == 0 or _ends_lazily(nodes[end - 1]) else nodes[:end]

    def _tells(self, node: Node) -> bool:
        if isinstance(node, Piece):
            return (self._is_telling and node.tells) or any(map(self._tells, node.nodes))
        return isinstance(node, Value) and node.field.has_value


@cache
def telling(text: str, *, is_searched: bool) -> Pattern:
    """Return the pattern that tells the releases of a text; see `searched`."""
    nodes = parse(text)
    return Pattern(searched(nodes) if is_searched else nodes, is_telling=True)


def _is_full_stop(node: Node) -> bool:
    """Whether the node is a full stop alone: one at the end of a line is often lost."""
    return node == _FULL_STOP or (isinstance(node, Value) and node.name == _FULL_STOP)


def _is_required(node: Node) -> bool:
    return not isinstance(node, Piece) and not _is_full_stop(node)


def _ends_lazily(node: Node) -> bool:
    if isinstance(node, Piece):
        return _ends_lazily(node.nodes[-1])
    return isinstance(node, Value) and node.field.is_lazy
