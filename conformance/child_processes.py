"""Child processes that do not outlive this one, however it ends.

Whoever starts a process stops it too. Where this process is killed, nobody here can: so a small
program watches from outside, whose input ends with this process.
"""

import atexit
import subprocess
import sys
from pathlib import Path
from threading import Lock
from typing import Final

_PROGRAM: Final = Path(__file__).with_name("end_with_parent.py")
_STOP_TIMEOUT_S: Final = 10.0
_watchers: Final[list[subprocess.Popen[bytes]]] = []
_lock: Final = Lock()


def end_with_us(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Have a process killed when this one has ended, unless it has ended by then itself."""
    with _lock:
        if not _watchers or _watchers[-1].poll() is not None:
            _watchers.append(_watcher())
        told = _watchers[-1].stdin
        if told is not None:
            told.write(b"%d\n" % process.pid)
            told.flush()


def _watcher() -> subprocess.Popen[bytes]:
    """Start the program that watches; in a session of its own, which Ctrl-C does not reach."""
    watcher = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-S", str(_PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    atexit.register(watcher.communicate, timeout=_STOP_TIMEOUT_S)
    return watcher
