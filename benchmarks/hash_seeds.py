"""The same virtual run under several hash seeds: where the clients begin to differ, and in what.

    python -m benchmarks.hash_seeds [--until S] [HASH_SEED ...]

aiokafka iterates sets of strings, whose order is the hash seed's. The cluster does not: up to the
first request that differs, every answer is the same, and that first frame is a client's.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.frames import read_header
from coordinator_sim.server.wire_record import Side, WireFrame, first_difference
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.story import story_line

HASH_SEEDS = (0, 1, 2)
OF_OFFSETS = (Event.OFFSET_COMMIT, Event.OFFSET_FETCH)

Played = tuple[tuple[WireFrame, ...], tuple[TraceEvent, ...]]


def played(hash_seed: int, until_s: int) -> Played:
    """Frames and group events of one run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "frames")
        command = [sys.executable, "-m", "benchmarks.virtual_hour", "--fetch-wait", "30000"]
        subprocess.run(
            [*command, "--until", str(until_s), "--frames", str(file)],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        )
        return msgspec.msgpack.decode(file.read_bytes(), type=Played)


def described(frame: WireFrame) -> str:
    """A frame in a few words."""
    what = "an answer"
    if frame.side is Side.CLIENT:
        header = read_header(frame.body)
        api = ApiKey(header.api_key).name
        what = f"{api} v{header.api_version} of {header.client_id}"
    return f"{frame.at_us / 1_000_000:.6f} s, connection {frame.connection}: {what}"


def compared(one: Played, other: Played) -> list[str]:
    """Where two runs part, as lines."""
    index = first_difference(one[0], other[0])
    if index is None:
        return ["every frame is the same"]
    lines = [f"{index} frames of {len(one[0])} are the same; then"]
    lines += [f"  {described(frames[index])}" for frames, _ in (one, other)]
    at = next((n for n, (a, b) in enumerate(zip(one[1], other[1], strict=False)) if a != b), None)
    if at is None:
        return [*lines, f"all {len(one[1])} events of the group are the same"]
    lines.append(f"{at} events of the group of {len(one[1])} are the same; then")
    lines += [f"  {story_line(events[at])}" for _, events in (one, other)]
    groups = [of_groups(events) for _, events in (one, other)]
    same = "the same" if groups[0] == groups[1] else "not the same"
    lines.append(f"without commits and fetches of offsets its {len(groups[0])} events are {same}")
    return lines


def of_groups(events: Sequence[TraceEvent]) -> list[str]:
    """The events that are not about offsets, with their times."""
    return [story_line(event) for event in events if event.event not in OF_OFFSETS]


def main(arguments: Sequence[str] = ()) -> None:
    """Compare the runs of each further hash seed with that of the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--until", type=int, default=3_600, help="virtual seconds")
    parser.add_argument("hash_seeds", type=int, nargs="*", default=HASH_SEEDS)
    chosen = parser.parse_args(arguments)
    first, *others = chosen.hash_seeds
    standard = played(first, chosen.until)
    for hash_seed in others:
        print(f"PYTHONHASHSEED {first} and {hash_seed}:")
        for line in compared(standard, played(hash_seed, chosen.until)):
            print(f"  {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
