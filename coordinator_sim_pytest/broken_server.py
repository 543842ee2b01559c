"""The command line with one of Kafka's bugs: `python -m coordinator_sim_pytest.broken_server ID`.

The bug is put into the source of one module before that is imported, so it needs a process of its
own; the bugs are those of `conformance.museum`, each found by a case of the suite.
"""

import sys

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
    """Put the bug in, then be `coordinator-sim` with the rest of the arguments."""
    install(bug_named(sys.argv.pop(1)))
    from coordinator_sim.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
