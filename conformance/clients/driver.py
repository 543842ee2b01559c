"""A client under test in a process of its own, behind a small program that drives it.

A driver is started as `PROGRAM BOOTSTRAP GROUP TOPIC NAME=VALUE...`, with the names of Java's
consumer settings. What it sees, it prints as one JSON object a line:

    {"event": "hello", "client": "librdkafka", "version": "2.16.0", "lacks": {"lost": "why"}}
    {"event": "assigned", "at_ms": 1767225600000, "partitions": ["t-0"]}

`revoked` and `lost` are like `assigned`; `error` has a `message`; `committed` and `closed` end a
command. Commands are lines of its standard input: `commit`, `pause` (poll no more), `subscribe T`
and `close`. Other programs are judged as well, by what they send alone.
"""

import asyncio
import json
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.clients.wire import now_ms

FEATURES: Final = {
    "settings": "NAME=VALUE arguments",
    "commands": "commands on standard input",
    "static": "group.instance.id",
    "cooperative": "the cooperative-sticky assignor",
    "mixed": "an eager and a cooperative assignor at once",
    "revoked": "a callback before partitions go",
    "lost": "a callback for partitions that are lost",
    "max.poll.interval.ms": "a bound on the time between polls",
    "request.timeout.ms": "a timeout of requests",
    "commit": "synchronous commits",
    "assign": "partitions assigned by hand",
    "subscribe": "another subscription later",
}
"""What a case may need of a client, in words."""

_LAST_LINES: Final = 5
_CLOSE_S: Final = 10


class Event(Struct, frozen=True):
    """Something that a driver said.

    Args:
        at_ms: When the driver said it, by its own clock, in ms since 1970.
        kind: `assigned`, `revoked`, `lost`, `error`, `committed`, `closed`, or `hello`.
        partitions: Partitions that it is about.
        message: Words of an error.
    """

    at_ms: float
    kind: str
    partitions: tuple[str, ...] = ()
    message: str = ""

    def __str__(self) -> str:
        return f"application: {' '.join([self.kind, *self.partitions, self.message]).strip()}"


class Hello(Struct, frozen=True):
    """A driver's description of its client.

    Args:
        client: Name of the client.
        version: Its version.
        lacks: Features out of `FEATURES` that it does not have, with the reason.
    """

    client: str = ""
    version: str = ""
    lacks: dict[str, str] = {}


class Program(Struct, frozen=True, kw_only=True):
    """A program that drives a client.

    Args:
        command: Words of its command line; `{bootstrap}`, `{group}` and `{topic}` are replaced.
        speaks: Whether it is a driver as above; others take no settings and no commands.
    """

    command: tuple[str, ...]
    speaks: bool = True

    def words(self, bootstrap: str, group: str, topic: str) -> list[str]:
        """Return the command line without settings."""
        places = {"{bootstrap}": bootstrap, "{group}": group, "{topic}": topic}
        found = []
        for word in self.command:
            for place, value in places.items():
                word = word.replace(place, value)  # noqa: PLW2901 - one place after the other
            found.append(word)
        return found


class Driver:
    """One running client.

    Args:
        process: The started program.
        listener: Called after each event.
        log: File with its standard error.

    Attributes:
        hello: What it said of its client; None before it did.
        events: What it said since.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, listener: Callable[[], None], log: Path
    ) -> None:
        self._process = process
        self._listener = listener
        self._log = log
        self.hello: Hello | None = None
        self.events: list[Event] = []
        self._reader = asyncio.create_task(self._read())

    def send(self, command: str) -> None:
        """Give a command."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(f"{command}\n".encode())

    def terminate(self) -> None:
        """Ask a program without commands to end."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    async def kill(self) -> None:
        """End the process at once."""
        with suppress(ProcessLookupError):
            self._process.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._process.wait()
        self._reader.cancel()

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.returncode is not None

    def last_words(self) -> str:
        """Return the last lines of its standard error."""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-_LAST_LINES:])

    async def _read(self) -> None:
        stream = self._process.stdout
        while stream is not None and (line := await stream.readline()):
            self._heard(line)
            self._listener()
        await self._process.wait()
        self._listener()

    def _heard(self, line: bytes) -> None:
        """Take a line; what is no event is a program's own output."""
        try:
            said: Any = json.loads(line)
        except ValueError:
            return
        if not isinstance(said, dict) or "event" not in said:
            return
        if said["event"] == "hello":
            self.hello = Hello(
                str(said.get("client", "")), str(said.get("version", "")), said.get("lacks", {})
            )
            return
        self.events.append(
            Event(
                float(said.get("at_ms", now_ms())),
                str(said["event"]),
                tuple(sorted(map(str, said.get("partitions", ())))),
                " ".join(str(said.get("message", "")).split()),
            )
        )


async def started(words: Sequence[str], listener: Callable[[], None], log: Path) -> Driver:
    """Start a program.

    Raises:
        DataError: it cannot be started.
    """
    try:
        with log.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                limit=1 << 20,
            )
    except OSError as error:
        raise DataError(f"{words[0]}: {error.strerror}; give the path of a program") from None
    return Driver(process, listener, log)
