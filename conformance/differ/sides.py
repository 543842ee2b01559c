"""Who answers commands: our core in this process, or any program that speaks the line protocol."""

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

from coordinator_sim.errors import DataError
from coordinator_sim.harness.lines import Lines

Json = dict[str, Any]

_ANSWER_TIMEOUT_S: Final = 20.0
"""A side that says nothing for so long hangs."""


class Simulator:
    """Our core in this process. A command that it breaks down on is answered with `error`.

    Args:
        profile: Of worlds whose `init` names none.
        has_edge: Whether every request passes the checks of KafkaApis.
    """

    def __init__(self, profile: str, *, has_edge: bool = False) -> None:
        self._profile = profile
        self._has_edge = has_edge
        self._lines = Lines()

    def answer(self, command: Json) -> Json:
        """Its answer to one command; a world is made in the profile, unless it names one."""
        if command["op"] == "init" and "profile" not in command:
            command = {**command, "profile": self._profile, "edge": self._has_edge}
        try:
            return self._lines.answer(command)
        except Exception as error:  # noqa: BLE001 - a core that breaks down differs from Kafka's
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno} {place.name}"
            return {"error": f"the simulator broke down: {error!r} in {where}"}


class LinesProcess:
    """A running program that answers one JSON line with one.

    What it answers is read while it is being written to, so that any number of commands may be
    under way. Its diagnostics are dropped: an answer says what is wrong with a command.
    """

    def __init__(self, command: Sequence[str], folder: Path | None = None) -> None:
        self.command = tuple(command)
        self._process = subprocess.Popen(  # noqa: S603 - the program the caller names
            self.command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._answers: SimpleQueue[bytes] = SimpleQueue()
        self._unanswered: deque[bytes] = deque()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, lines: Sequence[bytes]) -> None:
        """Give it commands, without waiting for answers.

        Raises:
            DataError: It has ended.
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
        """Its next answer.

        Raises:
            DataError: It has ended, says nothing, or says something that is no answer.
        """
        try:
            line = self._answers.get(timeout=_ANSWER_TIMEOUT_S)
        except Empty:
            asked = self._unanswered[0].decode()
            message = f"{self.command[0]} has not answered for {_ANSWER_TIMEOUT_S:.0f} s: {asked}"
            raise DataError(message) from None
        if not line:
            raise self._ended()
        self._unanswered.popleft()
        try:
            answer = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            raise DataError(f"{self.command[0]} answered {line[:80]!r}: {error}") from None
        if not isinstance(answer, dict):
            raise DataError(f"{self.command[0]} answered {line[:80]!r}: wants an object")
        return answer

    def answer(self, command: Json) -> Json:
        """Its answer to one command, waited for."""
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
        """The process itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it and wait for it."""
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
