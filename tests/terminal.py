"""A command line on a terminal: a process whose stderr, and stdout if wanted, is a pseudo-terminal.

Every bar is drawn from its first step, however short the work is.
"""

import os
import pty
import signal
import sys
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Thread
from typing import Final

ESCAPE: Final = "\x1b"
SPELLED_OUT: Final = ("\\u001b", "\\x1b", "\\033")
"""Forms in which a reader would see an escape that the terminal should obey."""
_IMPATIENT: Final = """
from coordinator_sim.cli import progress
progress.PATIENCE_S = 0
progress.progress_bar.__wrapped__.__kwdefaults__["patience_s"] = 0
from {module} import main
main()
"""
_MODULES: Final = {
    "coordinator-sim": "coordinator_sim.cli.entry",
    "conformance": "coordinator_sim_conformance.cli.main",
}


def run_on_terminal(
    *words: str | Path, folder: Path, is_piped: bool = False, until: str = ""
) -> tuple[int, str, str]:
    """Run a command line to its end under a pseudo-terminal of 80 columns.

    Args:
        words: The command, its name first.
        folder: Working directory.
        is_piped: Whether stdout is a pipe, as in `command | less`.
        until: Text on the terminal that is answered with Ctrl-C; empty for none.

    Returns:
        The exit code, the text on the terminal, and the text in the pipe.
    """
    ours, theirs = pty.openpty()
    shown = bytearray()
    with Popen(
        [sys.executable, "-c", _IMPATIENT.format(module=_MODULES[str(words[0])]), *words[1:]],
        cwd=folder,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"},
        stdin=theirs,
        stdout=PIPE if is_piped else theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        reader = Thread(target=_read_terminal, args=(ours, shown, process, until.encode()))
        reader.start()
        piped = b"" if process.stdout is None else process.stdout.read()
        reader.join()
        os.close(ours)
    return process.returncode, shown.decode(), piped.decode()


def _read_terminal(terminal: int, shown: bytearray, process: "Popen[bytes]", until: bytes) -> None:
    """Read until the last process that holds the other end is over, which Linux tells by EIO."""
    is_interrupted = not until
    try:
        while part := os.read(terminal, 65_536):
            shown += part
            if not is_interrupted and until in shown:
                is_interrupted = True
                process.send_signal(signal.SIGINT)
    except OSError:
        return


def assert_drawn(terminal: str, piped: str) -> None:
    """Check that a terminal got real escapes, none of them spelled out, and a pipe got none."""
    assert ESCAPE in terminal
    assert not [form for form in SPELLED_OUT if form in terminal]
    assert ESCAPE not in piped
