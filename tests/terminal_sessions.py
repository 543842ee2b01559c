"""Sessions of a terminal as pages show them: commands, what they print, and servers behind them.

Ports of a page are moved out of the way of whatever listens on this host, and moved back in what
is printed.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from coordinator_sim.cli.entry import main as coordinator_sim
from coordinator_sim_conformance.cli.main import main as conformance
from tests.command_line import run_here

COMMANDS: Final = {"coordinator-sim": coordinator_sim, "conformance": conformance}
WIDTH: Final = "110"
SERVER: Final = re.compile(r"coordinator-sim serve |.* &$", re.DOTALL)
"""Commands that go on in the background; their output up to the first line is shown."""
_SHELL: Final = re.compile(r"[|<>;&$*`(]| --bug ")
"""Commands that need a shell, or a process of their own because they change the library."""
_PORT: Final = re.compile(r"(?:(?<=port )|(?<=:))9\d{3}\b")
_COMMIT: Final = re.compile(r"^(coordinator-sim \S+) \([^)]*\)", re.MULTILINE)
_PROGRESS: Final = re.compile(r"^\d+ of \d+ cases ended\n?", re.MULTILINE)
_START_S: Final = 60
_COMMAND_S: Final = 600
_LIVE: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"-[0-9a-f]{8}\b"), "-UUID"),
    (re.compile(r"\b[\w-]{22}(?=[\"\s]|$)", re.MULTILINE), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,\d]*Z?|\b\d\d:\d\d:\d\d\.\d+\b"), "TIME"),
    (re.compile(r"\b1[78]\d{11}\b"), "MS"),
    (re.compile(r"(?<=[:.\d]\d:)\d{5}\b|(?<=0\.0\.1:)\d{4,5}\b"), "PORT"),
    (re.compile(r"(?<=\"pid\":)\d+"), "PID"),
    (re.compile(r"^\d+(?= +MS)", re.MULTILINE), "SEQ"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s)\b"), "DURATION"),
    (re.compile(r"\b\d+ a second\b"), "RATE"),
    (re.compile(r"[ ─]{2,}"), "  "),
)
"""What differs from run to run where real time and sockets are at work, widths of columns too."""
_SECONDS: Final = (
    (re.compile(r" in [0-9.]+s\b"), " in N s"),
    (re.compile(r"(?<=%) +\d+\.\d$", re.MULTILINE), " CPU"),
)
"""What differs everywhere: the seconds of pytest, and CPU times at the end of a row."""


class Terminal:
    """A folder in which the commands of one page run one after the other.

    Args:
        folder: Empty at first.
        programs: Folder of the programs; None for those of the clone, in this process where no
            shell is needed.
    """

    def __init__(self, folder: Path, programs: Path | None = None) -> None:
        self._folder = folder
        self._programs = programs
        self._servers: list[subprocess.Popen[bytes]] = []
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        self._shift = 11_000 + 1_000 * int(worker)
        path = os.pathsep.join([str(programs or Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = {
            "PATH": path,
            "HOME": str(folder),
            "COLUMNS": WIDTH,
            "LANG": "C.UTF-8",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "coordinator_sim_pytest",
        }
        self.is_live = False
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")

    def run(self, command: str) -> str:
        """What a command prints, errors behind it, without the commit that it was run at."""
        typed = _PORT.sub(lambda port: str(int(port[0]) + self._shift), command)
        if typed.startswith("export "):
            name, _, value = typed.removeprefix("export ").partition("=")
            self._environment[name] = value
            return ""
        if SERVER.match(typed):
            self.is_live = True
            printed = self._serve(typed)
        else:
            printed = self._finish(typed)
        moved = rf"(?<=:){(self._shift + 9_000) // 1_000}\d{{3}}\b"
        printed = re.sub(moved, lambda port: str(int(port[0]) - self._shift), printed)
        printed = printed.replace(f"{self._folder}/", "")
        lines = [line.rstrip() for line in _PROGRESS.sub("", printed).strip("\n").splitlines()]
        return _COMMIT.sub(r"\1", "\n".join(lines)).strip("\n")

    def stop(self) -> None:
        """End the servers that were started."""
        for server in self._servers:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGTERM)
        for server in self._servers:
            server.wait(30)
        self._servers.clear()

    def _finish(self, command: str) -> str:
        name, *words = shlex.split(command, comments=True)
        if shutil.which(name, path=self._environment["PATH"]) is None and name not in {"cd", "."}:
            pytest.skip(f"{name} is not installed")
        if self._programs is None and name in COMMANDS and not _SHELL.search(command):
            done = run_here(
                *words,
                command=COMMANDS[name],
                folder=self._folder,
                environment={k: v for k, v in self._environment.items() if k != "PATH"},
            )
            return done.stdout + done.stderr
        shell = subprocess.run(
            ["sh", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
            timeout=_COMMAND_S,
        )
        return shell.stdout

    def _serve(self, command: str) -> str:
        """Start a program in the background, and wait for its first line on standard output."""
        if not command.endswith(" &"):
            self.stop()
        log = self._folder / f".server-{len(self._servers)}-{time.monotonic_ns()}"
        with log.open("wb") as output:
            server = subprocess.Popen(
                ["sh", "-c", f"exec {command.removesuffix(' &')}"],
                cwd=self._folder,
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._servers.append(server)
        deadline_s = time.monotonic() + _START_S
        while time.monotonic() < deadline_s and server.poll() is None:
            printed = log.read_text(encoding="utf-8")
            if '"bootstrap"' in printed or (command.endswith(" &") and printed.endswith("\n")):
                break
            time.sleep(0.02)
        return log.read_text(encoding="utf-8")


def masked(text: str, *, is_live: bool) -> str:
    """The text without what differs from run to run."""
    for pattern, name in (*_SECONDS, *(_LIVE if is_live else ())):
        text = pattern.sub(name, text)
    return text
