"""Runs the command line in a child process: `python -m coordinator_sim_pytest.child ...`.

The child ends with its standard input, so that no run of pytest, however it ends, leaves it behind.
"""

import os
import signal
import sys
import threading


def main() -> None:
    """Run `coordinator-sim` with the arguments."""
    threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    from coordinator_sim.cli.entry import main as command_line

    command_line()


def _end_with_stdin() -> None:
    # Not through sys.stdin, whose lock a waiting thread would hold at the process's end.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
