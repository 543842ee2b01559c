"""What a terminal is spared of names and titles that nobody vouches for."""

import io
import json
import sys
from typing import TextIO, cast

import pytest
from rich.table import Table

from coordinator_sim.cli.console import PrintableConsole
from coordinator_sim.cli.printing import PrintableStream, guard_streams, printable

EVIL = "\x1b]0;owned\x07 \x1b[2J\x9b31m\u202etxt.exe\rend"


def test_control_characters_are_spelled_out() -> None:
    """Escapes, the bell, a carriage return and turned text are seen, and do nothing."""
    clean = printable(EVIL)
    assert clean == (r"\u001b]0;owned\u0007 \u001b[2J\u009b31m\u202etxt.exe\u000dend")
    assert printable("Größe\t日本\n") == "Größe\t日本\n"


def test_json_that_is_printed_stays_the_same_json() -> None:
    """The spelling is JSON's own."""
    stream = io.StringIO()
    print(
        json.dumps({"name": EVIL}, ensure_ascii=False),
        file=cast("io.StringIO", PrintableStream(stream)),
    )
    assert json.loads(stream.getvalue()) == {"name": EVIL}


def test_a_guarded_stream_is_not_guarded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that runs in a guarded process keeps its streams."""
    guarded = PrintableStream(io.StringIO())
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(f"sys.{name}", guarded)
    guard_streams()
    assert sys.stdout is cast("TextIO", guarded)


@pytest.mark.parametrize("in_a_table", [False, True])
def test_a_console_keeps_its_own_colours_alone(in_a_table: bool) -> None:
    """A title and a cell are clean, while styles are still escapes."""
    stream = io.StringIO()
    console = PrintableConsole(file=stream, force_terminal=True, width=200)
    if in_a_table:
        table = Table(title=EVIL)
        table.add_column("group", style="red")
        table.add_row(EVIL)
        console.print(table)
    else:
        console.print(EVIL, style="red", markup=False)
    told = stream.getvalue()
    assert "\x1b[31m" in told
    assert all(evil not in told for evil in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e"))


def test_line_beside_a_spinner_is_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spinner draws behind the guard; names that others print meanwhile do not reach it raw."""
    stream = io.StringIO()
    guarded = cast("TextIO", PrintableStream(stream))
    monkeypatch.setattr("sys.stderr", guarded)
    console = PrintableConsole(stderr=True, force_terminal=True, width=200)
    with console.status("working"):
        sys.stderr.write(f"warning: {EVIL}\x1b[35mlate\n")
    told = stream.getvalue()
    assert "\x1b[32m" in told
    assert r"warning: \u001b]0;owned\u0007 \u001b[2J\u009b31m" in told
    assert all(evil not in told for evil in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\x1b[35m"))
    assert sys.stderr is guarded
