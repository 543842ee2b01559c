"""Correct servers graded on a host with four busy processes: nothing may fail.

Each run is the whole suite in real time. A verdict that is reached only with wider margins says
how near a case came to a false failure.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.servers import ours
from coordinator_sim_conformance.real_kafka.kafka import Broker

RUNS: Final = 10
BUSY: Final = 4
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "transaction.partition.verification.enable": "false",
}
_ONE_BUSY: Final = "while True: pass"


def main(arguments: list[str] | None = None) -> None:
    """Grade, and print a line a run.

    Raises:
        SystemExit: a case failed or broke off.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--busy", type=int, default=BUSY)
    parser.add_argument("--kafka", action="store_true", help="a real Kafka instead of serve")
    chosen = parser.parse_args(arguments or [])
    bad = 0
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        address = stack.enter_context(_server(Path(text), is_kafka=chosen.kafka))
        for _ in range(chosen.busy):
            stack.enter_context(_busy())
        print(f"{chosen.busy} busy processes, {os.cpu_count()} processors")
        print(f"{'run':>3}{'s':>6}{'passed':>8}{'bad':>5}{'skipped':>9}  wider margins, load")
        for number in range(1, chosen.runs + 1):
            bad += _print_run(number, address)
            sys.stdout.flush()
    print(f"failed or unknown in all runs: {bad} (bar 0)")
    if bad:
        raise SystemExit(1)


def _print_run(number: int, address: str) -> int:
    """Grade once, and print how it went; return how many cases failed or broke off."""
    began_s = time.monotonic()
    endings = _endings(address)
    took_s = time.monotonic() - began_s
    verdicts = Counter(each["verdict"] for each in endings)
    bad = [each for each in endings if each["verdict"] in {"failed", "unknown"}]
    wider = [f"{each['case_id']} x{each['margins']}" for each in endings if each["margins"] > 1]
    print(
        f"{number:>3}{took_s:>6.0f}{verdicts['passed']:>8}{len(bad):>5}{verdicts['skipped']:>9}"
        f"  {', '.join(wider) or '-'}, {os.getloadavg()[0]:.1f}"
    )
    for each in bad:
        print(f"      {each['verdict']} {each['case_id']}: {each['reason']}; {each['came']}")
    return len(bad)


def _endings(address: str) -> list[dict[str, Any]]:
    command = (sys.executable, "-m", "coordinator_sim_conformance", "run")
    done = subprocess.run(
        [*command, "--bootstrap", address, "--json"], stdout=subprocess.PIPE, check=False
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["endings"]
    return found


@contextmanager
def _server(folder: Path, *, is_kafka: bool) -> Iterator[str]:
    if is_kafka:
        with Broker(folder / "broker", SETTINGS) as broker:
            yield broker.bootstrap
        return
    options = [word for pair in SETTINGS.items() for word in ("--set", "=".join(pair))]
    with ours("serve", *options) as served:
        yield served.address


@contextmanager
def _busy() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", _ONE_BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
