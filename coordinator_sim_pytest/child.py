"""The command line in a process of a test run's own: `python -m coordinator_sim_pytest.child ...`.

It ends with its standard input, so that no run of pytest, however it ends, leaves it behind. With
`--bug ID` a bug of Kafka's is in it: one line of one module is another before that is imported,
hence the process. The bugs are those of `conformance.museum`, each found by a case of the suite.
"""

import os
import signal
import sys
import threading

from conformance.museum.breaking import install
from conformance.museum.exhibit import Exhibit
from conformance.museum.exhibits import EXHIBITS
from coordinator_sim.errors import ConfigError

_COORDINATOR = "coordinator_sim.coordinator."


def bug_named(bug_id: str) -> Exhibit:
    """The bug of the group coordinator that has this id.

    Raises:
        ConfigError: there is none; bugs of clients are the clients' own.
    """
    bugs = {each.exhibit_id: each for each in EXHIBITS if each.module.startswith(_COORDINATOR)}
    if bug_id not in bugs:
        raise ConfigError(
            f"no bug {bug_id!r} of the group coordinator; there are {', '.join(bugs)}"
        )
    return bugs[bug_id]


def main() -> None:
    """Put the bug in, if there is one, then be `coordinator-sim` with the rest of the arguments."""
    if sys.argv[1] == "--bug":
        install(bug_named(sys.argv[2]))
        del sys.argv[1:3]
    threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    from coordinator_sim.cli.main import main as command_line

    command_line()


def _end_with_stdin() -> None:
    # Not through sys.stdin, whose lock a thread that waits would hold at the process's end.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
