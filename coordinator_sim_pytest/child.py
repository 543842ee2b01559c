"""Runs the command line in a child process: `python -m coordinator_sim_pytest.child ...`.

The child ends with its standard input, so that no run of pytest, however it ends, leaves it behind.
`--bug ID` puts a bug of Kafka's in: one line of one module is replaced before that is imported,
hence the process. The bugs are those of `conformance.museum`, each found by a case of the suite.
"""

import os
import signal
import sys
import threading

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.museum.breaking import install
from coordinator_sim_conformance.museum.exhibit import Exhibit
from coordinator_sim_conformance.museum.exhibits import EXHIBITS

_COORDINATOR = "coordinator_sim.coordinator."


def bug_named(bug_id: str) -> Exhibit:
    """Return the bug of the group coordinator with this id.

    Raises:
        ConfigError: the id is unknown; bugs of clients are the clients' own.
    """
    bugs = {each.exhibit_id: each for each in EXHIBITS if each.module.startswith(_COORDINATOR)}
    if bug_id not in bugs:
        raise ConfigError(
            f"no bug {bug_id!r} of the group coordinator; there are {', '.join(bugs)}"
        )
    return bugs[bug_id]


def main() -> None:
    """Put the bug in, if there is one, then run `coordinator-sim` with the other arguments."""
    if sys.argv[1] == "--bug":
        install(bug_named(sys.argv[2]))
        del sys.argv[1:3]
    threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    from coordinator_sim.cli.main import main as command_line

    command_line()


def _end_with_stdin() -> None:
    # Not through sys.stdin, whose lock a waiting thread would hold at the process's end.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
