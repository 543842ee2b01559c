"""A program: it is told of processes on its input, and ends them when its input ends.

The input ends with whoever holds the other end, so also where nothing else can act: after SIGKILL.
It needs nothing but the standard library, and is run by its path.
"""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path


def began(pid: int) -> str:
    """Return the instant at which a process began, as the system says; empty if it does not say.

    A number is used again when its process is gone: then this differs.
    """
    with suppress(OSError):
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # The name before, in brackets, may hold spaces; the 20th field after it is the start.
        return told.rpartition(")")[2].split()[19]
    return ""


def main() -> None:
    """Read numbers of processes, one a line, until the input ends; then kill these processes."""
    known = {pid: began(pid) for pid in map(int, sys.stdin)}
    for pid, instant in known.items():
        if began(pid) == instant:
            with suppress(ProcessLookupError, PermissionError):
                # The leader of a group ends with all that it started.
                kill = os.killpg if os.getpgid(pid) == pid else os.kill
                kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
