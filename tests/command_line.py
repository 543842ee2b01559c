"""The command line in the process of the tests: what a user would see, without another interpreter.

Starting an interpreter and importing the commands costs more than most of them do. Whatever is
about the process itself, its streams or its signals, is tried in one of its own.
"""

import io
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

from coordinator_sim.cli.entry import main as coordinator_sim
from tests.own_assignors import own_assignors_forgotten


def run_here(
    *arguments: str | Path,
    command: Callable[[], None] = coordinator_sim,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> "CompletedProcess[str]":
    """Run a command line to its end, and return its exit code and what it printed.

    Args:
        arguments: Words behind the command's name.
        command: What the name starts.
        folder: Working directory; None for the present one.
        environment: Variables beside the present ones.
    """
    words = [str(each) for each in arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    code: str | int | None = 0
    with (
        patch.object(sys, "argv", ["coordinator-sim", *words]),
        patch.dict(os.environ, environment or {}),
        chdir(folder or Path.cwd()),
        redirect_stdout(out),
        redirect_stderr(err),
        own_assignors_forgotten(),
    ):
        try:
            command()
        except SystemExit as ended:
            code = ended.code
    assert code is None or isinstance(code, int)
    told, complaint = (text_of(stream) for stream in (out, err))
    return CompletedProcess(words, code or 0, told, complaint)


def text_of(stream: io.TextIOWrapper) -> str:
    """Everything that was written to a stream."""
    stream.flush()
    stream.seek(0)
    return stream.read()
