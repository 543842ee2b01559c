"""Sides that answer commands: our core in this process, or a program with the line protocol."""

import subprocess
import traceback
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from coordinator_sim.errors import UNREADABLE_JSON, DataError
from coordinator_sim.harness.harness import Harness
from coordinator_sim.harness.lines import Lines
from coordinator_sim.harness.share_state_lines import ShareStateLines
from coordinator_sim_conformance.child_processes import end_with_us

Json = dict[str, Any]

_ANSWER_TIMEOUT_S: Final = 20.0
"""Time without an answer after which a side counts as hanging."""


class NoAnswer(DataError):
    """A program that is running has not answered in time."""


class Simulator:
    """Our core in this process. A command that crashes it is answered with `error`.

    Args:
        profile: Profile of worlds whose `init` names none.
        has_edge: Whether every request passes the checks of KafkaApis.
    """

    def __init__(self, profile: str, *, has_edge: bool = False) -> None:
        self._profile = profile
        self._has_edge = has_edge
        self._lines = Lines()
        self._share_lines: ShareStateLines | None = None

    @property
    def world(self) -> Harness:
        """The world of the last `init`, for inspection."""
        return self._lines.harness

    def answer(self, command: Json) -> Json:
        """Return the answer to one command; a new world has the profile, unless it names one."""
        if command["op"] == "init" and "profile" not in command:
            command = {**command, "profile": self._profile, "edge": self._has_edge}
        if command["op"] == "init":
            is_share = command.get("coordinator") == "share"
            self._share_lines = ShareStateLines() if is_share else None
        try:
            return (self._share_lines or self._lines).answer(command)
        except Exception as error:  # noqa: BLE001 - a core that breaks down differs from Kafka's
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno} {place.name}"
            return {"error": f"the simulator broke down: {error!r} in {where}"}


class LinesProcess:
    """A running program that answers each JSON line with one.

    Answers are read while commands are written, so that any number of commands may be pending. Its
    diagnostics are dropped: an answer says what is wrong with a command.
    """

    def __init__(self, command: Sequence[str], folder: Path | None = None) -> None:
        self.command = tuple(command)
        self._folder = folder
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - the program the caller names
            self.command,
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        end_with_us(self._process)
        self._answers: SimpleQueue[bytes] = SimpleQueue()
        self._unanswered: deque[bytes] = deque()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Of the running program."""
        return self._process.pid

    def send(self, lines: Sequence[bytes]) -> None:
        """Send commands without waiting for answers.

        Raises:
            DataError: the program has ended.
        """
        if self._process.stdin is None:
            raise DataError(f"{self.command[0]} takes no input")
        self._unanswered.extend(lines)
        try:
            self._process.stdin.write(b"\n".join(lines) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def receive(self) -> Json:
        """Return the program's next answer.

        Raises:
            NoAnswer: the program does not answer.
            DataError: it has ended, or answers with another form.
        """
        try:
            line = self._answers.get(timeout=_ANSWER_TIMEOUT_S)
        except Empty:
            asked = self._unanswered[0].decode()
            message = f"{self.command[0]} has not answered for {_ANSWER_TIMEOUT_S:.0f} s: {asked}"
            raise NoAnswer(message) from None
        if not line:
            raise self._ended()
        self._unanswered.popleft()
        try:
            answer = msgspec.json.decode(line)
        except UNREADABLE_JSON as error:
            raise DataError(f"{self.command[0]} answered {line[:80]!r}: {error}") from None
        if not isinstance(answer, dict):
            raise DataError(f"{self.command[0]} answered {line[:80]!r}: wants an object")
        return answer

    def restart(self) -> None:
        """Kill the program, drop what it has not answered, and start it again."""
        self._process.kill()
        self._close()
        self._start()

    def answer(self, command: Json) -> Json:
        """Send one command and return the program's answer."""
        self.send([msgspec.json.encode(command)])
        return self.receive()

    def _read(self) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                self._answers.put(line)
        self._answers.put(b"")

    def _ended(self) -> DataError:
        code = self._process.wait()
        return DataError(f"{' '.join(self.command)} ended with exit code {code}")

    def __enter__(self) -> Self:
        """Return the process itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the program and wait for it."""
        self._close()

    def _close(self) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
