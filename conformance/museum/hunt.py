"""Sends the suite after each exhibit, each in a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.museum.exhibit import Exhibit

PROCESSOR_S: Final = 120
"""Processor time of the suite, which takes a sixth of it; a broken core that takes more hangs."""
_PATIENCE_S: Final = 1_800
"""Wall time in which a suite gets that much of a processor, or waits for something for ever."""

HANG: Final = "does not end"
"""The detector of an exhibit under which the suite does not come to its end."""


class Finding(msgspec.Struct, frozen=True):
    """What the suite made of one exhibit: the first cases that did not pass; none if it hid."""

    exhibit_id: str
    detectors: tuple[str, ...]


def hunted(exhibits: Iterable[Exhibit], jobs: int | None = None) -> Iterator[Finding]:
    """Every exhibit's finding, in the order given.

    Args:
        exhibits: What to look for.
        jobs: Processes at a time; None for one a processor.
    """
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        yield from pool.map(find, exhibits)


def find(
    exhibit: Exhibit,
    enough: int = 1,
    *,
    processor_s: int = PROCESSOR_S,
    patience_s: float = _PATIENCE_S,
) -> Finding:
    """Play the suite on a core with this fault until so many cases have failed.

    The bound is processor time, so that a busy machine is no hang.

    Raises:
        DataError: the suite could not be played; the last line of its complaint is in the message.
            Or nothing is decided: it neither ended nor used up its processor time.
    """
    module = "coordinator_sim_conformance.museum.playing"
    command = (sys.executable, "-m", module, exhibit.exhibit_id, str(enough), str(processor_s))
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command,
            capture_output=True,
            timeout=patience_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DataError(
            f"{exhibit.exhibit_id}: not decided: the suite neither ended nor used {processor_s} s "
            f"of a processor within {patience_s:g} s; play it again on a machine with less to do"
        ) from None
    if done.returncode == -signal.SIGXCPU:
        return Finding(exhibit.exhibit_id, (HANG,))
    if done.returncode != 0:
        complaint = done.stderr.decode(errors="replace").strip().splitlines()
        raise DataError(f"{exhibit.exhibit_id}: {complaint[-1] if complaint else 'no answer'}")
    return Finding(exhibit.exhibit_id, tuple(msgspec.json.decode(done.stdout, type=list[str])))
