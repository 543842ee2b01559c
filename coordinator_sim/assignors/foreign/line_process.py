"""Child processes of assignors: a line is asked, a line is answered, within a bound of time."""

import atexit
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, Final, TypeVar

from coordinator_sim.assignors.foreign.contract import TIME_BOUND_S, AssignorFault, OwnAssignor
from coordinator_sim.errors import ConfigError

_READ_BYTES: Final = 1 << 16
_STOP_S: Final = 1.0


class LineProcess:
    """A process that reads lines and answers each with a line.

    Args:
        own: The assignor, named where the process fails; its folder is the working directory.
        words: The command.

    Raises:
        ConfigError: the command names nothing that can be started.
    """

    def __init__(self, own: OwnAssignor, words: Sequence[str]) -> None:
        self._own = own
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                words,
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

    def exchange(self, question: bytes, bound_s: float | None = None) -> bytes:
        """Send a line and return the next line.

        Args:
            question: Without its line feed.
            bound_s: Longest time for both, in seconds; None for that of an assignment.

        Raises:
            AssignorFault: the process ends, or takes too long; it is stopped then.
        """
        bound_s = TIME_BOUND_S if bound_s is None else bound_s
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101 - a pipe, as asked for
        assert stdout is not None  # noqa: S101 - as above
        os.set_blocking(stdin.fileno(), False)
        deadline_s = time.monotonic() + bound_s
        unsent, parts = memoryview(question + b"\n"), [self._pending]
        with selectors.DefaultSelector() as ready:
            ready.register(stdin, selectors.EVENT_WRITE)
            ready.register(stdout, selectors.EVENT_READ)
            while b"\n" not in parts[-1]:
                left_s = deadline_s - time.monotonic()
                awake = [key.fileobj for key, _ in ready.select(left_s)] if left_s > 0 else []
                if not awake:
                    raise self._late(bound_s)
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

    def _late(self, bound_s: float) -> AssignorFault:
        self._process.kill()
        self.stop()
        return AssignorFault(
            f"assignor {self._own.name!r}: its process has not answered within {bound_s:g} s"
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


P = TypeVar("P", bound=LineProcess)
_RUNNING: Final[dict[OwnAssignor, Any]] = {}


def running(own: OwnAssignor, start: Callable[[OwnAssignor], P]) -> P:
    """Return the process of an assignor, started if there is none that can be asked."""
    process: P | None = _RUNNING.get(own)
    if process is None or not process.is_alive:
        process = _RUNNING[own] = start(own)
    return process


def stop_processes() -> None:
    """End all processes that were asked; the next question starts its process again."""
    while _RUNNING:
        _RUNNING.popitem()[1].stop()
