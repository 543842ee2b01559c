"""Plays a night of faults at a real broker, asks for the causes, and counts the right answers.

`python -m conformance.real_kafka.night OUT [SEED]` plays it in a new folder (about six minutes);
`python -m conformance.real_kafka.night judge OUT` judges the answers for a night that was played.
It needs Java, Maven and the extra `live`.
"""

import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Final

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim_conformance.real_kafka.night.cluster import Cluster, Members
from coordinator_sim_conformance.real_kafka.night.judging import judge, table
from coordinator_sim_conformance.real_kafka.night.story import (
    FIRST,
    GROUPS,
    OUTAGE,
    SESSION_S,
    START,
    Step,
    step,
)

_EXIT_FAILED: Final = 1
_EXIT_USAGE: Final = 2


def play(folder: Path, seed: int) -> None:
    """Play a night: all groups at once, with a restart of the broker in the middle.

    Args:
        folder: New folder for its logs, the traces of the watch, and the truth.
        seed: Draws the order of faults in each group.
    """
    with Cluster(folder) as cluster:
        groups = [Members(cluster, each) for each in GROUPS]
        _together(
            [
                (
                    each,
                    (
                        step("start a", *START),
                        step("start b", *START),
                        *FIRST.get(each.group.name, ()),
                    ),
                )
                for each in groups
            ]
        )
        halves: list[list[tuple[Members, list[Step]]]] = [[], []]
        for each in groups:
            faults = list(each.group.faults)
            Random(f"{seed} {each.group.name}").shuffle(faults)  # noqa: S311 - an order
            for place, half in enumerate(halves):
                own = faults[place::2]
                half.append((each, [step for fault in own for step in fault]))
        _together(halves[0])
        for each in groups:
            cluster.write(each.group.name, "the broker restarts", (OUTAGE,))
        cluster.broker.stop()
        cluster.broker.start()
        time.sleep(2 * SESSION_S)
        _together(halves[1])
        for each in groups:
            cluster.write(each.group.name, "the end", ())
            each.end()


def _together(parts: Sequence[tuple[Members, Iterable[Step]]]) -> None:
    """Let each group take its steps, all groups at once; an error of one ends the night."""

    def take(part: tuple[Members, Iterable[Step]]) -> None:
        members, steps = part
        for each in steps:
            print(f"{members.group.name}: {each.action}", flush=True)  # noqa: T201 - a command
            members.take(each)

    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(take, parts))


def main(arguments: list[str]) -> int:
    """Play or judge a night; return the exit code."""
    if len(arguments) not in {1, 2}:
        sys.stderr.write(f"{__doc__}\n")
        return _EXIT_USAGE
    try:
        folder = Path(arguments[-1] if arguments[0] == "judge" else arguments[0])
        if arguments[0] != "judge":
            play(folder, int(arguments[1]) if arguments[1:] else 1)
        print(table(judge(folder)))  # noqa: T201 - a command
    except CoordinatorSimError as error:
        sys.stderr.write(f"error: {error}\n")
        return _EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
