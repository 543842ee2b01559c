"""JSON as text: to values that keep what Jackson still knows of them, and back.

Reading takes comments and stops after the first value, as Kafka's `JsonUtil` configures Jackson. A
number keeps its text, because `5` is also a fine string; an object keeps repeated keys, because
each of them is checked. Writing is Jackson's, compact or with its default pretty printer.

Source: kafka trunk, trogdor/.../trogdor/common/JsonUtil.java; answers of Jackson 2.21, recorded in
tests/data/trogdor/jackson.jsonl.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.trogdor.refusals import TrogdorRefusal, quoted

# DEVIATION: Jackson takes 1000 containers inside one another; Python's stack would not write them.
MAX_DEPTH: Final = 100
"""Containers inside one another."""

MAX_NUMBER_CHARS: Final = 1000
"""Length of a number. Source: Jackson, StreamReadConstraints."""

_BLANKS: Final = re.compile(r"(?:[ \t\r\n]++|/\*.*?\*/|//[^\r\n]*+)*+", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')
_AFTER_NUMBER: Final = re.compile(r"[ \t\r\n,\]}/]|$")
_AFTER_LAST_NUMBER: Final = re.compile(r"[ \t\r\n]|$")
_WORDS: Final = re.compile(r"[A-Za-z0-9_$]+")
_LITERALS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}
_ESCAPES: Final = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
_SURROGATES: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_WRITTEN_ESCAPES: Final = str.maketrans(
    {chr(code): f"\\u{code:04X}" for code in range(0x20)}
    | {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
)


class Number(Struct, frozen=True):
    """A number as it was written.

    Args:
        text: At most 1000 characters.
        is_whole: Whether it has neither fraction nor exponent.
    """

    text: str
    is_whole: bool


class Object(Struct, frozen=True):
    """An object.

    Args:
        members: Key and value, in the order of the text; keys may repeat.
    """

    members: tuple[tuple[str, "Node"], ...]


Node = None | bool | str | Number | list["Node"] | Object
"""A value as it was read."""


class _Lexer:
    """A place in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.is_list = False

    def refusal(self, why: str) -> TrogdorRefusal:
        """What a text is refused with that is no JSON.

        QUIRK: it is a failure (500) in the outermost object, and a mistake of the client's (400)
        inside: Jackson wraps what goes wrong below a property, and Trogdor maps what is wrapped.
        A list is refused (400) before its end is seen, because a message is an object.
        Source: RestExceptionMapper; BeanDeserializerBase.wrapAndThrow.
        """
        code = 400 if self.depth > 1 or self.is_list else 500
        return TrogdorRefusal(code, f"no JSON at character {self.at}: {why}")

    def skip_blanks(self) -> str:
        """Go to the next character that means something; the empty text at the end."""
        match = _BLANKS.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def scalar(self, first: str) -> Node:
        """Read a string, a number or a literal."""
        if first == '"':
            # QUIRK: strings are read late, when their property is already being worked on.
            self.depth += 1
            read = self.string()
            self.depth -= 1
            return read
        if first == "-" or "0" <= first <= "9":
            return self.number()
        word = _WORDS.match(self.text, self.at)
        if word is None or word[0] not in _LITERALS:
            raise self.refusal(f"{quoted(word[0] if word else first)} is no value")
        self.at = word.end()
        return _LITERALS[word[0]]

    def number(self) -> Number:
        """Read a number."""
        match = _NUMBER.match(self.text, self.at)
        after = _AFTER_NUMBER if self.depth else _AFTER_LAST_NUMBER
        if match is None or not after.match(self.text, match.end()):
            raise self.refusal("no number")
        if len(match[0]) > MAX_NUMBER_CHARS:
            raise self.refusal(f"a number of more than {MAX_NUMBER_CHARS} characters")
        self.at = match.end()
        return Number(match[0], match[1] is None and match[2] is None)

    def string(self) -> str:
        """Read a string; the place is at its opening quote."""
        self.at += 1
        parts = []
        while True:
            plain = _PLAIN.match(self.text, self.at)
            parts.append(plain[0] if plain else "")
            self.at += len(parts[-1])
            stop = self.text[self.at : self.at + 1]
            if stop == '"':
                self.at += 1
                return _joined("".join(parts))
            if stop != "\\":
                raise self.refusal("the string does not end" if not stop else "a control character")
            parts.append(self.escape())

    def escape(self) -> str:
        """Read an escape; the place is at its backslash."""
        kind = self.text[self.at + 1 : self.at + 2]
        if kind in _ESCAPES:
            self.at += 2
            return _ESCAPES[kind]
        digits = self.text[self.at + 2 : self.at + 6]
        if kind != "u" or not re.fullmatch("[0-9a-fA-F]{4}", digits):
            raise self.refusal("an unknown escape")
        self.at += 6
        return chr(int(digits, 16))


def _joined(text: str) -> str:
    """The text with surrogates that were escaped in pairs as one character each."""
    return _SURROGATES.sub(
        lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text
    )


class _Open:
    """A container that is being read."""

    def __init__(self, closing: str) -> None:
        self.closing = closing
        self.values: list[Node] = []
        self.keys: list[str] = []

    def closed(self) -> Node:
        """The container, complete."""
        if self.closing == "]":
            return self.values
        return Object(tuple(zip(self.keys, self.values, strict=True)))


def parsed(data: bytes | str) -> Node:
    """The first value of a text.

    Args:
        data: Bytes in UTF-8, 16 or 32; what follows the first value is passed over.

    Raises:
        TrogdorRefusal: 500 without a value and for broken JSON, 400 for JSON that is broken inside
            a property's value.
    """
    lexer = _Lexer(data if isinstance(data, str) else _decoded(data))
    stack: list[_Open] = []
    # Ends because each round reads at least one character, or raises.
    while True:
        value = _next_value(lexer, stack)
        while True:
            if not stack:
                return value
            stack[-1].values.append(value)
            if not _goes_on(lexer, stack[-1]):
                break
            value = stack.pop().closed()
            lexer.depth -= 1


def _goes_on(lexer: _Lexer, container: _Open) -> bool:
    """Whether the container ends here, after a value; if not, go past the comma."""
    follows = lexer.skip_blanks()
    if follows == container.closing:
        lexer.at += 1
        return True
    if follows != ",":
        raise lexer.refusal(f"',' or {container.closing!r} is missing")
    lexer.at += 1
    if container.closing == "}":
        container.keys.append(_key(lexer))
    return False


def _next_value(lexer: _Lexer, stack: list[_Open]) -> Node:
    """Read a scalar or an empty container, going into containers on the way."""
    while True:
        first = lexer.skip_blanks()
        if not first:
            raise lexer.refusal("the text ends" if stack else "the text is empty")
        if first not in "[{":
            return lexer.scalar(first)
        lexer.at += 1
        lexer.depth += 1
        if lexer.depth > MAX_DEPTH:
            raise lexer.refusal(f"more than {MAX_DEPTH} containers inside one another")
        lexer.is_list = lexer.is_list or (first == "[" and not stack)
        container = _Open("]" if first == "[" else "}")
        if lexer.skip_blanks() == container.closing:
            lexer.at += 1
            lexer.depth -= 1
            return container.closed()
        stack.append(container)
        if container.closing == "}":
            container.keys.append(_key(lexer))


def _key(lexer: _Lexer) -> str:
    """Read the name of a member and its colon."""
    if lexer.skip_blanks() != '"':
        raise lexer.refusal("the name of a member is missing")
    key = lexer.string()
    if lexer.skip_blanks() != ":":
        raise lexer.refusal("':' is missing")
    lexer.at += 1
    return key


def _decoded(data: bytes) -> str:
    try:
        return data.decode(json.detect_encoding(data))
    except UnicodeDecodeError as broken:
        raise TrogdorRefusal(500, f"no JSON: {broken}") from broken


def plain(node: Node) -> Any:  # noqa: ANN401 (any JSON value)
    """The value as Python has it: the last of repeated keys, numbers as int or float."""
    if isinstance(node, Number):
        return int(node.text) if node.is_whole else float(node.text)
    if isinstance(node, Object):
        return {key: plain(value) for key, value in node.members}
    if isinstance(node, list):
        return [plain(value) for value in node]
    return node


def java_double(value: float) -> str:
    """A double as Jackson writes it: shortest digits, with an exponent below 1E-3 and from 1E7.

    Source: java.lang.Double.toString of Java 19 and later.
    """
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 (is it no number)
        return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[str(value)]
    sign = "-" if str(value).startswith("-") else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits.strip("0"):
        return f"{sign}0.0"
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if -2 <= point <= 7:  # noqa: PLR2004 (Java's bounds of the plain form)
        padded = "0" * (1 - point) + digits if point < 1 else digits.ljust(point, "0")
        split = max(point, 1)
        return f"{sign}{padded[:split]}.{padded[split:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _scalar_text(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return java_double(value)
        case str():
            return f'"{value.translate(_WRITTEN_ESCAPES)}"'
    raise TypeError(f"{value!r} is no JSON value")


def compact(tree: object) -> str:
    """The JSON of a tree of dicts, lists and scalars, without blanks."""
    if isinstance(tree, dict):
        members = (f"{_scalar_text(key)}:{compact(value)}" for key, value in tree.items())
        return f"{{{','.join(members)}}}"
    if isinstance(tree, list):
        return f"[{','.join(compact(value) for value in tree)}]"
    return _scalar_text(tree)


def pretty(tree: object, indent: str = "") -> str:
    """The JSON of a tree as Jackson's default pretty printer writes it: arrays stay on a line."""
    return "".join(_pretty(tree, indent))


def _pretty(tree: object, indent: str) -> Iterator[str]:
    if isinstance(tree, dict) and tree:
        inner = f"{indent}  "
        for index, (key, value) in enumerate(tree.items()):
            yield f"{',' if index else '{'}\n{inner}{_scalar_text(key)} : {pretty(value, inner)}"
        yield f"\n{indent}}}"
    elif isinstance(tree, list) and tree:
        yield f"[ {', '.join(pretty(value, indent) for value in tree)} ]"
    elif isinstance(tree, dict):
        yield "{ }"
    elif isinstance(tree, list):
        yield "[ ]"
    else:
        yield _scalar_text(tree)
