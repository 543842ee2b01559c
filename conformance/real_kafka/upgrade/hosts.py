"""Processes with members of groups in them: Java's and librdkafka's, told what to do by lines."""

import subprocess
import sys
import time
from collections.abc import Callable
from threading import Thread
from types import TracebackType
from typing import Final, Self

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.child_processes import end_with_us
from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION, HERE, java_command
from coordinator_sim_conformance.real_kafka.upgrade.account import Event

PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.02
_PROGRAM: Final = "coordinator_sim_conformance.real_kafka.upgrade.librdkafka_members"
_OF_NOBODY: Final = "-"
_WITH_OFFSET: Final = ("read", "committing", "committed")
_GIVEN_UP: Final = ("revoked", "lost")
_WITH_PLACE: Final = ("assigned", *_GIVEN_UP, *_WITH_OFFSET)


class Host:
    """A process with members, to be used as a context.

    Attributes:
        events: What its members told, in order.
        owned: Partitions that its members have now, each with its owner.
        refused: Commits that were refused, as during a rebalance of a cooperative member.
        troubles: Lines that a right run does not have: members that failed.
    """

    def __init__(self, command: list[str]) -> None:
        self.events: list[Event] = []
        self.owned: set[tuple[str, str]] = set()
        self.refused: list[str] = []
        self.troubles: list[str] = []
        self._answers: list[str] = []
        self._alive: set[str] = set()
        self._process = subprocess.Popen(  # noqa: S603 - our own programs
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        end_with_us(self._process)
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    def of_java(cls, bootstrap: str) -> Self:
        """Start one for Java's consumers, which also asks as an administrator."""
        return cls(java_command(BROKER_VERSION, str(HERE / "UpgradeMembers.java"), bootstrap))

    @classmethod
    def of_librdkafka(cls, bootstrap: str) -> Self:
        """Start one for librdkafka's consumers."""
        return cls([sys.executable, "-m", _PROGRAM, bootstrap])

    def __enter__(self) -> Self:
        """Return it, started."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process, with all members."""
        self._process.kill()
        self._process.wait()
        self._reader.join(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def start(self, who: str, topics: list[str], settings: dict[str, str]) -> None:
        """Start a member."""
        self._alive.add(who)
        named = (f"{name}={value}" for name, value in settings.items())
        self._tell("start", who, ",".join(topics), *named)

    def stop(self, who: str) -> None:
        """Have a member close, and wait until it has.

        Raises:
            DataError: it did not close in time.
        """
        self._tell("stop", who)
        self.wait_for(lambda: any(each.who == who for each in self._closed()), f"{who} to close")
        self._alive.discard(who)

    def kill(self) -> None:
        """End the process as `kill -9` does; once all is read, its members count as killed."""
        self._process.kill()
        self._process.wait()
        at_us = time.time_ns() // 1_000
        self._reader.join(PATIENCE_S)
        self.events += [Event(at_us, who, "killed") for who in sorted(self._alive)]
        self.owned.clear()

    def ask(self, *question: str) -> str:
        """What Java's admin client answers to `group ID` or `offsets ID`.

        Raises:
            DataError: no answer came in time.
        """
        before = len(self._answers)
        self._tell(*question)
        self.wait_for(lambda: len(self._answers) > before, f"an answer to {' '.join(question)}")
        return self._answers[-1]

    def wait_for(self, holds: Callable[[], bool], what: str) -> None:
        """Return when something holds.

        Raises:
            DataError: it did not in time, or the process has ended.
        """
        until_s = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > until_s or self._process.poll() is not None:
                raise DataError(f"waited for {what}; {self.troubles[-3:]}")
            time.sleep(_POLL_S)

    def _closed(self) -> list[Event]:
        return [each for each in self.events if each.what == "closed"]

    def _tell(self, *words: str) -> None:
        if self._process.stdin is None:
            raise DataError("the process of the members has no input")
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            at_us, who, what, *about = line.split()
            if who == _OF_NOBODY:
                self._answers.append(" ".join(about))
            elif what in _WITH_PLACE:
                offset = int(about[1]) if what in _WITH_OFFSET else -1
                value = about[2] if what == "read" else ""
                self.events.append(Event(int(at_us), who, what, about[0], offset, value))
                if what == "assigned":
                    self.owned.add((about[0], who))
                elif what in _GIVEN_UP:
                    self.owned.discard((about[0], who))
            elif what == "closed":
                self.events.append(Event(int(at_us), who, what))
            else:
                (self.refused if what == "refused" else self.troubles).append(line.strip())
