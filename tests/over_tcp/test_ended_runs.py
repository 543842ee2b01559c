"""A run that is ended from outside leaves no process behind that it started."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

WAITS_LONG: Final = "EXPIRE-003"
"""It waits for a minute, beside one server in a process of its own."""
PATIENCE_S: Final = 60.0
PROC: Final = Path("/proc")


def test_a_terminated_run_stops_what_it_started(tmp_path: Path) -> None:
    """In order: its folder is gone too, and the exit code tells the signal."""
    with running(tmp_path) as (run, server):
        run.send_signal(signal.SIGTERM)

        assert run.wait(PATIENCE_S) == 128 + signal.SIGTERM
        assert has_ended(server)
        assert list(tmp_path.glob("conformance-*")) == []


@pytest.mark.nightly
def test_an_interrupted_run_stops_what_it_started(tmp_path: Path) -> None:
    """As Ctrl-C does, of which the servers are not told here."""
    with running(tmp_path) as (run, server):
        run.send_signal(signal.SIGINT)

        assert run.wait(PATIENCE_S) == 130
        assert has_ended(server)


def test_a_killed_run_leaves_no_server_behind(tmp_path: Path) -> None:
    """Where nothing in the run can act any more."""
    with running(tmp_path) as (run, server):
        run.kill()
        run.wait(PATIENCE_S)

        assert has_ended(server)


@contextmanager
def running(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """A run of one long case, once its server answers; and the server's number."""
    if not PROC.is_dir():
        pytest.skip(f"{PROC} is not here, which tells the children of a process")
    words = ["-m", "coordinator_sim_conformance", "run", "--target", "serve:real-time"]
    run = subprocess.Popen(
        [sys.executable, *words, "--case", WAITS_LONG],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = None
    try:
        server = awaited_server(run.pid, folder)
        yield run, server
    finally:
        run.kill()
        run.wait(PATIENCE_S)
        if server is not None and not has_ended(server, patience_s=0):
            os.kill(server, signal.SIGKILL)


def awaited_server(pid: int, folder: Path) -> int:
    """The server that a run has started, once it has told its address."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        told = any("bootstrap" in log.read_text() for log in folder.glob("*/*/output.log"))
        for child in children_of(pid):
            with suppress(OSError):
                if told and b"serve" in (PROC / str(child) / "cmdline").read_bytes():
                    return child
        time.sleep(0.1)
    pytest.fail("the run started no server")


def children_of(pid: int) -> Iterator[int]:
    """The processes that one has started, by any of its threads."""
    for each in (PROC / str(pid) / "task").glob("*/children"):
        with suppress(OSError):
            yield from map(int, each.read_text().split())


def has_ended(pid: int, patience_s: float = PATIENCE_S) -> bool:
    """Whether a process is gone, or is so soon; one that nobody has waited for is gone too."""
    deadline_s = time.monotonic() + patience_s
    while True:
        try:
            state = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.05)
