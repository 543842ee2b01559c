"""`serve` under load beside a real Kafka and kfake: CPU-seconds of the server, latency, memory.

Every server runs all the time and is loaded in turn, so that a busy machine is busy for all.
1,008 single-member groups on 16 connections; a commit or fetch is of 10 partitions. The load is
made by Go (loadgen), whose own cost is not in the figures: those are of the server's process, from
/proc. Trust CPU-seconds and the ratios of one run; a latency is an upper bound.
"""

import argparse
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.servers import Load, Server, all_of, kafka, kfake, ours, start_up_s

ROUNDS: Final = 3
SECONDS: Final = 2
GROUPS: Final = 1_008
CONNECTIONS: Final = 16
STEADY: Final = tuple(
    f"{kind} {in_flight}" for kind in ("heartbeat", "commit", "fetch") for in_flight in (1, 16)
)
REBALANCED: Final = (50, 300)
REBALANCE_ROUNDS: Final = 15
HELD: Final = 5_000
HELD_SECONDS: Final = 15
BARS: Final = {"heartbeat 1": 1.8, "commit 1": 4.5}
START_UP_BAR_S: Final = 0.5
REBALANCE_BAR_MS: Final = 0.15

Make = Callable[[], AbstractContextManager[Server]]


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; without arguments everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--alone", action="store_true", help="without Kafka and kfake")
    parser.add_argument("--held", type=int, default=HELD)
    chosen = parser.parse_args(arguments or [])
    _print_start_up()
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        folder = Path(text)
        loads = all_of(stack, folder, _makers(folder, alone=chosen.alone))
        _print_forming(loads)
        _print_steady(loads, chosen.rounds)
        for size in REBALANCED:
            _print_rebalances(loads, size)
        _print_held(loads[0], chosen.held)


def _makers(folder: Path, *, alone: bool) -> list[Make]:
    mine: list[Make] = [
        partial(ours, "serve"),
        partial(ours, "serve --log-dir", "--log-dir", str(folder / "log")),
        partial(ours, "serve --trace", "--trace", str(folder / "trace")),
    ]
    return mine if alone else [*mine, partial(kafka, folder), partial(kfake, folder)]


def _print_start_up() -> None:
    took = [start_up_s() for _ in range(5)]
    print(
        f"exec to the first ApiVersions answer: best {min(took):.2f} s, median {median(took):.2f} s"
        f" (bar {START_UP_BAR_S} s)"
    )


def _print_forming(loads: list[Load]) -> None:
    print(f"\n{'':18}{'KiB a group of one member':>28}{'RSS MB':>10}")
    for each in loads:
        before = each.server.rss_kb()
        each.tell(f"form {GROUPS} {CONNECTIONS}")
        after = each.server.rss_kb()
        print(f"{each.server.name:18}{(after - before) / GROUPS:>28.1f}{after / 1e3:>10.0f}")


def _print_steady(loads: list[Load], rounds: int) -> None:
    print("\nrequest, in flight: CPU-s per 100,000 requests | p50 / p99 us, medians of", rounds)
    for what in STEADY:
        kind, in_flight = what.split()
        found: dict[str, list[tuple[float, Any]]] = {each.server.name: [] for each in loads}
        for _ in range(rounds):
            for each in loads:
                each.server.rest()
                result, cpu_s = each.measured(f"run {kind} {in_flight} {SECONDS}")
                cost = cpu_s * 1e5 / result["requests"]
                found[each.server.name].append((cost, result))
        base = median(cost for cost, _ in found[loads[0].server.name])
        bar = f"   (bar {BARS[what]})" if what in BARS else ""
        print(f"{kind} {in_flight}{bar}")
        for name, runs in found.items():
            cost = median(cost for cost, _ in runs)
            p50, p99 = (median(run[key] for _, run in runs) for key in ("p50_us", "p99_us"))
            best = min(cost for cost, _ in runs)
            print(
                f"  {name:18}{cost:>7.2f} (best {best:.2f}){cost / base:>7.2f}x"
                f"{p50:>10,.0f} / {p99:,.0f}"
            )


def _print_rebalances(loads: list[Load], size: int) -> None:
    print(f"\nrebalance of {size} members: ms a round, CPU-ms a member and round", end="")
    print(f" (bar {REBALANCE_BAR_MS})")
    for each in loads:
        each.tell(f"rebalance {size} {REBALANCE_ROUNDS}")
        result, cpu_s = each.measured("go")
        cost_ms = cpu_s * 1e3 / size / REBALANCE_ROUNDS
        print(
            f"  {each.server.name:18}{result['round_ms']:>8.1f}{cost_ms:>8.3f}"
            f"   formed in {result['formed_ms']:,} ms"
        )


def _print_held(each: Load, count: int) -> None:
    """Connections that all send a heartbeat a second."""
    before = each.server.rss_kb()
    each.tell(f"hold {count} {HELD_SECONDS}")
    opened = each.server.rss_kb()
    _, cpu_s = each.measured("go")
    held = each.server.rss_kb()
    result = each.tell("go")
    print(
        f"\n{count:,} connections, a heartbeat a second each: {(opened - before) / count:.1f} KiB a"
        f" connection ({(held - before) / count:.1f} once all sent), {result['requests']:,}"
        f" heartbeats, {cpu_s * 1e5 / result['requests']:.2f} CPU-s per 100,000,"
        f" p50 / p99 {result['p50_us']:,.0f} / {result['p99_us']:,.0f} us"
    )


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
