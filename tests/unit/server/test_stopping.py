"""SIGTERM and SIGINT end a process whatever it is doing."""

import signal
import subprocess
import sys

import pytest

BUSY = """
import asyncio
from coordinator_sim.server import serving

serving.BUSY_S = serving.ENDING_S = 0.5

async def main():
    with serving.stopped_by_signals() as stopped:
        print("here", flush=True)
        {work}

asyncio.run(main())
"""
SIGNALS = [signal.SIGTERM, signal.SIGINT]


def ended(work: str, number: signal.Signals) -> tuple[int, str]:
    """Exit code and last words of a process that is sent a signal in the middle of that work."""
    code = BUSY.format(work=work)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "here\n"
            process.send_signal(number)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    return process.returncode, said


@pytest.mark.parametrize("number", SIGNALS)
def test_waiting_process_ends_in_order(number: signal.Signals) -> None:
    """A loop that has turns hears of the signal and ends as it likes."""
    assert ended("await stopped.wait()", number) == (0, "")


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(
    ("work", "reason"),
    [
        ("while True: pass", "the server was busy for 0.5 s"),
        ("await stopped.wait(); await asyncio.Event().wait()", "did not end within 0.5 s"),
    ],
)
def test_process_that_hangs_is_ended_all_the_same(
    work: str, reason: str, number: signal.Signals
) -> None:
    """Neither a loop without turns nor an end that does not come keeps the process."""
    code, said = ended(work, number)
    assert code == 128 + number
    assert reason in said
    assert number.name in said
