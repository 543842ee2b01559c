"""Upgrades groups under load at a broker, and counts each record.

`python -m conformance.real_kafka.upgrade HOST:PORT [GROUP...]` plays the groups `java`, `mixed`,
`auto`, `static` and `killed`: members go over to the consumer protocol one by one, and back. The
broker needs groups of the consumer protocol, a consumer session of few seconds
(`group.consumer.session.timeout.ms`), and no topics of these groups yet. Exit code 1: something is
against the rules.
"""

import sys
from collections import Counter

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim_conformance.real_kafka.upgrade.account import Account
from coordinator_sim_conformance.real_kafka.upgrade.hosts import Host
from coordinator_sim_conformance.real_kafka.upgrade.story import VARIANTS, play_upgrade

_ENDS = {"killed": "the last commit of a killed member", "revoked": "an automatic commit"}
"""How the holding of the reader before ended -> in words."""
_EXIT_FAILED = 1
_EXIT_USAGE = 2


def main(arguments: list[str]) -> int:
    """Play the groups that are named, or all; return the exit code."""
    named = arguments[1:]
    if not arguments or set(named) - {each.group for each in VARIANTS}:
        sys.stderr.write(f"{__doc__}\n")
        return _EXIT_USAGE
    bootstrap = arguments[0]
    faults: list[str] = []
    try:
        with Host.of_java(bootstrap) as java:
            for variant in VARIANTS:
                if not named or variant.group in named:
                    outcome = play_upgrade(bootstrap, variant, java, _tell)
                    _tell(f"{variant.group}: {_counted(outcome.account)}")
                    faults += outcome.faults()
    except CoordinatorSimError as error:
        sys.stderr.write(f"error: {error}\n")
        return _EXIT_FAILED
    for each in faults:
        _tell(f"against the rules: {each}")
    return _EXIT_FAILED if faults else 0


def _counted(account: Account) -> str:
    """The account in one line: each end after which records were read again, with their number."""
    ends = Counter(each.end for each in account.repeats)
    again = "".join(f", {count} after {_ENDS.get(end, end)}" for end, count in sorted(ends.items()))
    counts = f"{account.produced} written, {len(account.lost)} lost, {len(account.repeats)}"
    return f"{counts} read again{again}"


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
