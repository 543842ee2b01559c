"""The program in `franz_go/`, built once, and consumers that run it."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final, cast

import pytest

HERE: Final = Path(__file__).parent
PATIENCE_S: Final = 60
_BUILD_S: Final = 300
_WANTED: Final = (1, 26)


def find_go() -> str | None:
    """A Go that is new enough for franz-go: the environment's own, or the machine's."""
    for found in (Path(sys.executable).parent / "go", shutil.which("go")):
        if found is None or not Path(found).exists():
            continue
        told = subprocess.run([found, "version"], capture_output=True, text=True, check=True)
        version = re.search(r"go(\d+)\.(\d+)", told.stdout)
        if version is not None and tuple(map(int, version.groups())) >= _WANTED:
            return str(found)
    return None


@functools.cache
def program() -> str:
    """The path of the program; without Go the test is skipped."""
    go = find_go()
    if go is None:
        pytest.skip("franz-go needs Go 1.26 or later")
    target = Path(tempfile.gettempdir()) / f"franz_go_clients-{os.getuid()}"
    subprocess.run(
        [go, "build", "-o", target, "."],
        cwd=HERE / "franz_go",
        check=True,
        timeout=_BUILD_S,
        env={**os.environ, "GOTOOLCHAIN": "local"},
    )
    return str(target)


def franz(command: str, bootstrap: str, **settings: object) -> list[str]:
    """What the program prints; the test fails when it ends with an error."""
    status, lines = attempt(command, bootstrap, **settings)
    assert status == 0, lines
    return lines


def attempt(command: str, bootstrap: str, **settings: object) -> tuple[int, list[str]]:
    """With which status the program ends, and all it prints."""
    done = subprocess.run(
        [program(), command, bootstrap, *_arguments(settings)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * PATIENCE_S,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def _arguments(settings: dict[str, object]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]


class FranzConsumer:
    """A consumer of a group in a process of its own, read by a thread.

    Args:
        bootstrap: Of the brokers.
        settings: Of the program: `topic`, `group`, `balancer`, `instance`, `protocol`,
            `max_versions`.
    """

    def __init__(self, bootstrap: str, **settings: object) -> None:
        self._process = subprocess.Popen(
            [program(), "consume", bootstrap, *_arguments(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.owned: list[int] = []
        self.values: list[bytes] = []
        self.rebalances: list[list[int]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in cast("IO[str]", self._process.stdout):
            what, *rest = line.split()
            if what == "owned":
                self.owned = [int(each) for each in rest]
                self.rebalances.append(self.owned)
            else:
                self.values.append(rest[1].encode())

    def close(self) -> None:
        """Commit what was read, leave the group, and end."""
        cast("IO[str]", self._process.stdin).close()
        try:
            assert self._process.wait(PATIENCE_S) == 0
        finally:
            self._process.kill()
            self._reader.join(PATIENCE_S)
            cast("IO[str]", self._process.stdout).close()


def wait_until(holds: Callable[[], bool]) -> None:
    """Return when it holds; the test fails when it does not in time."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
