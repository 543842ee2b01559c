"""Requests a second and latency through the conformance proxy, beside a plain relay and direct.

Three of `serve` are loaded in turn: directly, through a TCP relay in Python that looks at nothing,
and through the proxy, which judges every exchange. The load is made by Go (loadgen): 1,008 groups
of one member on 16 connections; a commit or fetch is of 10 partitions. CPU-seconds are those of the
process that the load is connected to. Trust the ratios of one run.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.servers import Load, Server, build, line_of, load, ours, started

ROUNDS: Final = 3
SECONDS: Final = 2
GROUPS: Final = 1_008
CONNECTIONS: Final = 16
STEADY: Final = tuple(
    f"{kind} {in_flight}" for kind in ("heartbeat", "commit", "fetch") for in_flight in (1, 16)
)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds: int = parser.parse_args(arguments or []).rounds
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        program = build("loadgen", Path(text))
        behind = [stack.enter_context(ours("direct")) for _ in range(3)]
        ways = [
            behind[0],
            stack.enter_context(plain_relay(behind[1].address)),
            stack.enter_context(proxy(behind[2].address)),
        ]
        loads = []
        for way in ways:
            loads.append(stack.enter_context(load(program, way)))
            loads[-1].tell(f"form {GROUPS} {CONNECTIONS}")
        for what in STEADY:
            print_load(loads, what, rounds)


def print_load(loads: list[Load], what: str, rounds: int) -> None:
    """Load each way in turn, and print medians: rate, p99, CPU of what stands between."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for _ in range(rounds):
        for each in loads:
            each.server.rest()
            result, cpu_s = each.measured(f"run {what} {SECONDS}")
            rate = result["requests"] / SECONDS
            one = (rate, result["p99_us"], cpu_s * 1e5 / result["requests"])
            found.setdefault(each.server.name, []).append(one)
    print(f"\n{what} in flight: requests a second | p99 us | CPU-s per 100,000")
    base_rate, base_p99 = (median(run[i] for run in found[loads[0].server.name]) for i in (0, 1))
    for name, runs in found.items():
        rate, p99, cost = (median(run[i] for run in runs) for i in range(3))
        print(
            f"  {name:14}{rate:>10,.0f} {rate / base_rate:>5.2f}x"
            f"{p99:>10,.0f} {p99 / base_p99:>5.2f}x{cost:>8.2f}"
        )


@contextmanager
def plain_relay(upstream: str) -> Iterator[Server]:
    """A relay that looks at nothing."""
    with started([sys.executable, "-m", "benchmarks.plain_relay", upstream]) as process:
        yield Server("plain relay", line_of(process).strip(), process.pid)


@contextmanager
def proxy(upstream: str) -> Iterator[Server]:
    """The conformance proxy."""
    command = [sys.executable, "-m", "coordinator_sim_conformance", "proxy", "--json"]
    words = ["--listen", "127.0.0.1:0", "--upstream", upstream, "--all-clients-pass"]
    with started([*command, *words]) as process:
        address = json.loads(line_of(process))["listening"]
        yield Server("proxy", address, process.pid)


if __name__ == "__main__":
    main(sys.argv[1:])
