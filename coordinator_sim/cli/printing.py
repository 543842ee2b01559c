"""What names and titles look like on a terminal: characters that steer one are spelled out.

Group ids, member ids and titles come from logs, traces and files of anybody. The escapes are those
of JSON, so JSON that is printed stays what it was.
"""

import os
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TextIO, cast

if TYPE_CHECKING:
    from types import TracebackType

_CONTROLS: Final = (*range(0x20), *range(0x7F, 0xA0))
_TURNS: Final = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that turn the direction of the text after them, which then reads as another."""
_HALVES: Final = range(0xD800, 0xE000)
"""Halves of characters, as file names may hold: no stream can write them."""
_KEPT: Final = frozenset(map(ord, "\n\t"))
_ESCAPES: Final = {
    code: f"\\u{code:04x}" for code in (*_CONTROLS, *_TURNS, *_HALVES) if code not in _KEPT
}


def print_json(summary: object) -> None:
    """Print a summary of a command as one JSON document, indented."""
    import msgspec
    import typer

    typer.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())


def printable(text: str) -> str:
    """The text with control characters spelled as in JSON; line ends and tabs stay."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES)


class PrintableStream:
    """A text stream that spells control characters out; everything else is the stream's own.

    Args:
        stream: What is written to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the printable form of the text."""
        self._stream.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write the printable form of each line."""
        for line in lines:
            self.write(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        self._stream.flush()

    @property
    def rich_proxied_file(self) -> TextIO:
        """Where rich writes, whose colours are escapes too, behind all proxies; see `console`."""
        behind = self._stream
        while (proxied := getattr(behind, "rich_proxied_file", None)) is not None:
            behind = proxied
        return behind

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def guard_streams() -> None:
    """Make all that this process prints as text printable; bytes and rich's output pass.

    What the encoding lacks is spelled out too, and where a stream is closed nothing is printed.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
            setattr(sys, name, nowhere)
        elif not isinstance(stream, PrintableStream):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, cast("TextIO", PrintableStream(stream)))
