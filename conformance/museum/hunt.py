"""Sends the suite after each exhibit: processes that load it once play it in forks."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Final

import msgspec

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.museum.exhibit import Exhibit

PROCESSOR_S: Final = 120
"""Processor time of the suite, which takes a sixth of it; a broken core that takes more hangs."""
_PATIENCE_S: Final = 1_800
"""Wall time in which a suite gets that much of a processor, or waits for something for ever."""


class Finding(msgspec.Struct, frozen=True):
    """What the suite made of one exhibit: the first cases that did not pass; none if it hid."""

    exhibit_id: str
    detectors: tuple[str, ...]


def hunted(
    exhibits: Sequence[Exhibit],
    jobs: int | None = None,
    *,
    processor_s: int = PROCESSOR_S,
    patience_s: float = _PATIENCE_S,
) -> Iterator[Finding]:
    """Play the suite on a core with each fault until a case fails; findings in the order given.

    The bound is processor time, so that a busy machine is no hang.

    Args:
        exhibits: What to look for.
        jobs: Processes at a time; None for one a processor.
        processor_s: Processor time of the suite on one exhibit.
        patience_s: Wall time of the suite on one exhibit.

    Raises:
        DataError: the suite could not be played on an exhibit. Or nothing is decided: it neither
            ended nor used up its processor time.
    """
    count = min(jobs or os.cpu_count() or 1, len(exhibits))
    module = "coordinator_sim_conformance.museum.playing"
    command = (sys.executable, "-m", module, str(processor_s), str(patience_s))
    ids = [exhibit.exhibit_id for exhibit in exhibits]
    with ExitStack() as running:
        players = []
        for first in range(count):
            player = subprocess.Popen(  # noqa: S603 - our own module
                (*command, *ids[first::count]), stdout=subprocess.PIPE
            )
            running.enter_context(player)
            running.callback(player.kill)
            players.append(player)
        for number, exhibit_id in enumerate(ids):
            stdout = players[number % count].stdout
            line = stdout.readline() if stdout else b""
            outcome = msgspec.json.decode(line or b'"no answer"', type=tuple[str, ...] | str)
            if isinstance(outcome, str):
                raise DataError(f"{exhibit_id}: {outcome}")
            yield Finding(exhibit_id, outcome)
