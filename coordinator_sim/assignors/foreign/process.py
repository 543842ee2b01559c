"""Assignors that are processes: one question and one answer a line, as JSON."""

import atexit
import os
import selectors
import shlex
import subprocess
import tempfile
import time
from typing import IO, Final

import msgspec
from msgspec import Struct

from coordinator_sim.assignors.foreign.contract import (
    TIME_BOUND_S,
    Answer,
    AssignFunction,
    AssignorFault,
    Member,
    OwnAssignor,
    Topics,
)
from coordinator_sim.errors import ConfigError

_READ_BYTES: Final = 1 << 16
_STOP_S: Final = 1.0
_SHOWN_BYTES: Final = 200


class _Question(Struct, frozen=True):
    assignor: str
    topics: Topics
    members: tuple[Member, ...]


class _Reply(Struct, frozen=True):
    assigned: dict[str, list[tuple[str, int]]] | None = None
    error: str | None = None


class AssignorProcess:
    """A process that assigns, started with the first question and asked again and again.

    Args:
        own: Its command line and folder.

    Raises:
        ConfigError: the command line names nothing that can be started.
    """

    def __init__(self, own: OwnAssignor) -> None:
        self._own = own
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                shlex.split(own.target),
                cwd=own.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                bufsize=0,
            )
        except (OSError, ValueError, IndexError) as error:
            self._complaints.close()
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ConfigError(
                f"assignor {own.name!r}: {own.target!r} cannot be started: {reason}"
            ) from error
        atexit.register(self.stop)
        self._pending = b""

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, topics: Topics, members: tuple[Member, ...]) -> Answer:
        """Return its answer.

        Raises:
            AssignorFault: the process ends, takes too long, says an error, or no JSON answer.
        """
        question = _Question(self._own.name, topics, members)
        line = self._exchange(msgspec.json.encode(question) + b"\n")
        try:
            reply = msgspec.json.decode(line, type=_Reply)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            shown = line[:_SHOWN_BYTES].decode("utf-8", "replace")
            raise AssignorFault(
                f"assignor {self._own.name!r} answers {shown!r}: {error}; wants one line as "
                '{"assigned": {"consumer-1": [["orders", 0]]}}'
            ) from error
        if reply.error is not None:
            raise AssignorFault(f"assignor {self._own.name!r} refuses: {reply.error}")
        if reply.assigned is None:
            raise AssignorFault(
                f"assignor {self._own.name!r} answers without `assigned` and without `error`"
            )
        return reply.assigned

    def stop(self) -> None:
        """Close its input, and kill it if it does not end by itself."""
        atexit.unregister(self.stop)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._complaints.close()

    def _exchange(self, question: bytes) -> bytes:
        """Send a line and return the next line, both within the bound of time."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101 - a pipe, as asked for
        assert stdout is not None  # noqa: S101 - as above
        os.set_blocking(stdin.fileno(), False)
        deadline_s = time.monotonic() + TIME_BOUND_S
        unsent, parts = memoryview(question), [self._pending]
        with selectors.DefaultSelector() as ready:
            ready.register(stdin, selectors.EVENT_WRITE)
            ready.register(stdout, selectors.EVENT_READ)
            while b"\n" not in parts[-1]:
                left_s = deadline_s - time.monotonic()
                awake = [key.fileobj for key, _ in ready.select(left_s)] if left_s > 0 else []
                if not awake:
                    raise self._late()
                if stdout in awake:
                    parts.append(self._receive(stdout))
                elif unsent:
                    unsent = unsent[self._send(stdin, unsent) :]
                if not unsent and stdin in awake:
                    ready.unregister(stdin)
        line, _, self._pending = b"".join(parts).partition(b"\n")
        return line

    def _send(self, stdin: IO[bytes], unsent: memoryview) -> int:
        try:
            return os.write(stdin.fileno(), unsent)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            raise self._ended() from None

    def _receive(self, stdout: IO[bytes]) -> bytes:
        received = os.read(stdout.fileno(), _READ_BYTES)
        if not received:
            raise self._ended()
        return received

    def _late(self) -> AssignorFault:
        self._process.kill()
        self.stop()
        return AssignorFault(
            f"assignor {self._own.name!r}: its process has not answered within {TIME_BOUND_S:g} s"
        )

    def _ended(self) -> AssignorFault:
        code = self._process.wait()
        self._complaints.seek(0)
        lines = self._complaints.read().decode("utf-8", "replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        self.stop()
        return AssignorFault(
            f"assignor {self._own.name!r}: its process ended with code {code}{last}"
        )


_RUNNING: Final[dict[tuple[str, str, str], AssignorProcess]] = {}


def stop_processes() -> None:
    """End all processes that were asked; the next question starts its process again."""
    while _RUNNING:
        _RUNNING.popitem()[1].stop()


def process_function(own: OwnAssignor) -> AssignFunction:
    """Return a function that asks the process, which is shared by all members that ask."""

    def ask(topics: Topics, members: tuple[Member, ...]) -> Answer:
        key = (own.name, own.target, own.folder)
        process = _RUNNING.get(key)
        if process is None or not process.is_alive:
            process = _RUNNING[key] = AssignorProcess(own)
        return process.ask(topics, members)

    return ask
