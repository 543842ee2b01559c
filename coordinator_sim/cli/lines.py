"""`coordinator-sim lines`: the core behind a JSON line protocol, on stdin and stdout."""

import os
import sys
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from coordinator_sim.kafka.releases import RELEASES

_CHUNK_BYTES: Final = 1 << 16
"""Bytes taken from stdin at once; as much as a pipe holds."""


def lines(
    *,
    profile: Annotated[
        str, typer.Option("--profile", help="Which Kafka to behave like.", metavar="NAME")
    ] = RELEASES[-1],
) -> None:
    """Answer JSON commands from stdin, one object a line: a coordinator for any language.

    A command that cannot be run is answered with `error`. The exit code is 0 at the end of input.

    Example: echo '{"op":"init"}' | coordinator-sim lines
    """
    from coordinator_sim.harness.lines import Lines
    from coordinator_sim.kafka.profiles import profile_named

    session = Lines(profile_named(profile))
    for batch in _waiting_lines():
        answers = [session.answer_line(line) for line in batch if not line.isspace()]
        sys.stdout.buffer.write(b"".join(answer + b"\n" for answer in answers))
        sys.stdout.buffer.flush()


def _waiting_lines() -> Iterator[list[bytes]]:
    """The lines that have arrived, again and again: what is pipelined is answered in one write."""
    rest = b""
    while chunk := os.read(sys.stdin.fileno(), _CHUNK_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        if whole:
            yield [line for line in whole if line]
    if rest:
        yield [rest]
