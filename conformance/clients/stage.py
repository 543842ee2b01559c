"""A group of its own on the scripted coordinator, and one or more clients in it."""

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Final, NoReturn, TypeVar

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.faults.faults import (
    Action,
    Close,
    Delay,
    Drop,
    Fail,
    Fault,
    Match,
    Phase,
)
from coordinator_sim.server.kafka_server import KafkaServer
from coordinator_sim_conformance.clients.driver import (
    FEATURES,
    Driver,
    Event,
    Hello,
    Program,
    started,
)
from coordinator_sim_conformance.clients.wire import Exchange, Recorder, now_ms
from coordinator_sim_conformance.script.stage import CaseBroken, CaseFailed
from coordinator_sim_conformance.targets.target import Unsupported

PATIENCE_S: Final = 10.0
"""How long something that must happen may take, unless a case says more, times the margins."""
START_S: Final = 60.0
"""How long a program may take before its first request, times the margins."""
STABLE_S: Final = 15.0
"""How long a client may take from there to its assignment, times the margins."""
PARTITIONS: Final = 4
LEAST_BACKOFF: Final = 0.8
"""Part of a backoff that a client may wait: Java's draws a fifth more or less."""
USUAL: Final = {
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "300",
    "max.poll.interval.ms": "60000",
    "retry.backoff.ms": "100",
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "partition.assignment.strategy": "range",
    "metadata.max.age.ms": "300000",
}
"""Settings of every client, unless a case has others."""

T = TypeVar("T")
Where = Callable[[Exchange], bool]


class Stage:
    """What a case plays on.

    Args:
        server: The scripted coordinator.
        recorder: Its tap.
        program: The client's program.
        name: Name of the group and its topic; no other case has it.
        margins: Factor of all times that the case allows.
        folder: Folder for what the clients print.

    Attributes:
        failed_on_time: Whether the last failed expectation was about time alone.
        drivers: The clients started so far.
    """

    def __init__(
        self,
        server: KafkaServer,
        recorder: Recorder,
        program: Program,
        *,
        name: str,
        margins: int,
        folder: Path,
    ) -> None:
        self.server = server
        self.group = name
        self.topic = name
        self.margins = margins
        self.drivers: list[Driver] = []
        self.failed_on_time = False
        self.began_ms = now_ms()
        self._recorder = recorder
        self._program = program
        self._folder = folder
        self._news = asyncio.Event()
        self._notes: list[tuple[float, str]] = []
        self._rules: list[int] = []
        recorder.listen(name, self._news.set)
        self.create_topic(name)

    # -- the situation ---------------------------------------------------------------------

    @property
    def cluster(self) -> Cluster:
        """The cluster behind the sockets."""
        return self.server.cluster

    def create_topic(self, name: str) -> None:
        """Create a topic of `PARTITIONS` partitions."""
        self.cluster.topics.create_spread(name, PARTITIONS, self.server.now())

    def fail(self, api: str, error: str, *, times: int | None = 1) -> None:
        """Answer the next requests of the group with an error; None for all."""
        self.rule(api, Fail(error), times=times)

    def delay_answer(self, api: str, ms: int, *, times: int | None = 1) -> None:
        """Let the next requests be taken, and send their answers so much later."""
        self.rule(api, Delay(ms), times=times, phase=Phase.AFTER)

    def drop(self, api: str, *, times: int | None = 1) -> None:
        """Never answer the next requests."""
        self.rule(api, Drop(), times=times)

    def close_connection(self, api: str) -> None:
        """Close the connection of the next request instead of answering it."""
        self.rule(api, Close(), times=1)

    def rule(
        self, api: str, action: Action, *, times: int | None, phase: Phase = Phase.BEFORE
    ) -> None:
        """Add a fault rule for the group."""
        fault = Fault(
            match=Match(api=api, group=self.group), action=action, times=times, phase=phase
        )
        self._rules.append(self.cluster.faults.add(fault).fault_id)
        often = "all" if times is None else f"the next {times}"
        self.note(f"from now on: {often} {api}: {action}")

    def calm(self) -> None:
        """Remove the rules of this case."""
        for fault_id in self._rules:
            self.cluster.faults.remove(fault_id)
        self._rules = []

    def move_coordinator(self) -> None:
        """Let another broker coordinate the group."""
        self.note("the coordinator moves to another broker")
        self.cluster.operations.move_coordinator(self.group, None, self.server.now())
        self.cluster.go_on(self.server.now())
        self.server.settled()

    def add_partitions(self) -> None:
        """Double the topic's partitions."""
        self.note(f"{self.topic} gets {PARTITIONS} more partitions")
        topics = self.cluster.topics
        topics.add_partitions(
            self.topic, topics.spread(PARTITIONS, 1, PARTITIONS), self.server.now()
        )

    def note(self, words: str) -> None:
        """Put a line into the transcript."""
        self._notes.append((now_ms(), words))

    # -- clients ---------------------------------------------------------------------------

    async def start(self, *needs: str, **settings: str) -> Driver:
        """Start a client that subscribes to the topic, and wait until it looks for its group.

        Args:
            needs: Features out of `FEATURES` that the case needs.
            settings: Settings beside `USUAL`, with underscores for dots.

        Raises:
            Unsupported: the client does not have a feature.
            CaseBroken: it ended, or sent nothing in time.
        """
        given = {name.replace("_", "."): value for name, value in settings.items()}
        speaks = self._program.speaks
        if not speaks and (missing := [*needs, *(["settings"] if given else [])]):
            raise Unsupported(f"the program offers no way to {FEATURES[missing[0]]}")
        words = self._program.words(self.server.bootstrap(), self.group, self.topic)
        if speaks:
            words += [f"{name}={value}" for name, value in {**USUAL, **given}.items()]
        log = self._folder / f"{self.group}-{len(self.drivers)}.log"
        driver = await started(words, self._news.set, log)
        self.drivers.append(driver)
        told = " ".join(f"{name}={value}" for name, value in given.items())
        self.note(f"a client starts{told and ', with '}{told}")
        if speaks:
            await self._greeted(driver, needs)
        count = len(self.all("FindCoordinator"))
        await self.until(
            lambda: len(self.all("FindCoordinator")) > count or driver.has_ended or None,
            "the client looks for its group",
            START_S,
        )
        if len(self.all("FindCoordinator")) == count:
            raise CaseBroken(f"the program ended: {driver.last_words()}", self.transcript())
        return driver

    async def _greeted(self, driver: Driver, needs: tuple[str, ...]) -> None:
        hello: Hello | bool = await self.until(
            lambda: driver.hello or (driver.has_ended or None), "the driver says hello", START_S
        )
        if isinstance(hello, bool):
            raise CaseBroken(f"the driver ended: {driver.last_words()}", self.transcript())
        for feature in needs:
            if feature in hello.lacks:
                raise Unsupported(
                    f"{hello.client} lacks {FEATURES[feature]}: {hello.lacks[feature]}"
                )

    def close_client(self, driver: Driver) -> None:
        """Have a client closed; a program that takes no commands is asked to end."""
        if self._program.speaks:
            driver.send("close")
        else:
            driver.terminate()

    async def stable(self, after: Exchange | None = None) -> Exchange:
        """Return the SyncGroup that was answered without an error, with partitions."""
        return await self.answered("SyncGroup", "NONE", after=after, within_s=STABLE_S)

    async def settled(self) -> Exchange:
        """Return that SyncGroup once two heartbeats were answered behind it.

        Clients that are still being assigned their partitions may pass over what a first heartbeat
        tells them: a real rebalance is told again by the next one.
        """
        sync = await self.stable()
        first = await self.answered("Heartbeat", "NONE", after=sync)
        await self.answered("Heartbeat", "NONE", after=first)
        return sync

    async def close(self) -> None:
        """Kill the clients, and remove the rules."""
        self.calm()
        for driver in self.drivers:
            await driver.kill()

    # -- what is seen ----------------------------------------------------------------------

    def all(
        self, api: str | None = None, *, after: Exchange | None = None, where: Where | None = None
    ) -> list[Exchange]:
        """Return exchanges of the group so far.

        Args:
            api: Of this API alone.
            after: Requests that came after this one alone.
            where: Only those for which it holds.
        """
        first = 0 if after is None else after.number
        return [
            each
            for each in self._recorder.exchanges.get(self.group, ())
            if each.number > first
            and (api is None or each.api == api)
            and (where is None or where(each))
        ]

    async def request(
        self,
        api: str,
        *,
        after: Exchange | None = None,
        where: Where | None = None,
        within_s: float = PATIENCE_S,
        expecting: str = "",
    ) -> Exchange:
        """Return the first such request; wait for it.

        Raises:
            CaseFailed: it did not come in time.
        """
        return await self.until(
            lambda: next(iter(self.all(api, after=after, where=where)), None),
            expecting or f"a {api} comes",
            within_s,
        )

    async def answered(
        self,
        api: str,
        error: str,
        *,
        after: Exchange | None = None,
        where: Where | None = None,
        within_s: float = PATIENCE_S,
    ) -> Exchange:
        """Return the first such request that was answered with that error; wait for it.

        Raises:
            CaseFailed: there was none in time.
        """

        def fits(each: Exchange) -> bool:
            return each.error == error and (where is None or where(each))

        what = f"a {api} is answered {error}"
        return await self.request(api, after=after, where=fits, within_s=within_s, expecting=what)

    async def event(
        self,
        kind: str,
        *,
        of: Driver,
        after: float = 0,
        within_s: float = PATIENCE_S,
        expecting: str = "",
    ) -> Event:
        """Return the first such event of a driver after an instant; wait for it."""
        return await self.until(
            lambda: next((e for e in of.events if e.kind == kind and e.at_ms >= after), None),
            expecting or f"the application is told: {kind}",
            within_s,
        )

    async def until(
        self, find: Callable[[], T | None], expecting: str, within_s: float = PATIENCE_S
    ) -> T:
        """Return what is found first; look again whenever something happened.

        Raises:
            CaseFailed: nothing in time.
        """
        deadline_s = time.monotonic() + within_s * self.margins
        while (found := find()) is None:
            self._news.clear()
            left_s = deadline_s - time.monotonic()
            try:
                async with asyncio.timeout(max(0, left_s)):
                    await self._news.wait()
            except TimeoutError:
                if (found := find()) is not None:
                    break
                self._refuse(expecting, f"nothing in {within_s * self.margins:g} s")
        return found

    async def pass_time(self, seconds: float) -> None:
        """Let wall time pass; what a case waits for so must not happen meanwhile."""
        await asyncio.sleep(seconds)

    def expect(self, holds: bool, expectation: str, came: str, *, on_time: bool = False) -> None:
        """Fail the case unless it holds.

        Args:
            holds: Whether what is wanted came.
            expectation: What is wanted.
            came: What came.
            on_time: Whether it is about time alone.
        """
        if not holds:
            self.failed_on_time = on_time
            self._refuse(expectation, came)

    def expect_pauses(self, tries: list[Exchange], backoff_ms: int) -> None:
        """Fail the case unless tries that were refused are a backoff apart, on the average.

        Single pauses tell less: Java's client cuts them where a `poll` of its application ends.
        """
        pauses = [round(later.at_ms - earlier.answered_ms) for earlier, later in pairwise(tries)]
        self.expect(
            mean(pauses) >= LEAST_BACKOFF * backoff_ms,
            f"pauses of {backoff_ms} ms (retry.backoff.ms) on the average, less a fifth",
            f"pauses of {pauses} ms",
            on_time=True,
        )

    def lacks(self, what: str) -> NoReturn:
        """Leave the case out: the client has no such thing, and need not have it.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(f"the client has no {what}")

    def expect_none(self, found: list[Exchange], expectation: str) -> None:
        """Fail the case if there are any of these."""
        self.expect(not found, expectation, str(found[0]) if found else "")

    def _refuse(self, expectation: str, came: str) -> NoReturn:
        raise CaseFailed(f"wanted: {expectation}", self.transcript(), expectation, came)

    # -- the record ------------------------------------------------------------------------

    def transcript(self) -> tuple[str, ...]:
        """Return all that happened, in order; like heartbeats in a row are one line."""
        lines = [(at_ms, words) for at_ms, words in self._notes]
        lines += [(each.at_ms, str(each)) for each in self.all()]
        for driver in self.drivers:
            lines += [(event.at_ms, str(event)) for event in driver.events]
        return tuple(_folded(sorted(lines, key=lambda line: line[0]), self.began_ms))


def _folded(lines: list[tuple[float, str]], began_ms: float) -> Iterator[str]:
    """Yield lines with their times; equal ones in a row once, with their number."""
    place = 0
    while place < len(lines):
        at_ms, words = lines[place]
        end = place + 1
        while end < len(lines) and lines[end][1] == words:
            end += 1
        often = f"  ({end - place} times)" if end - place > 1 else ""
        yield f"{at_ms - began_ms:7.0f} ms  {words}{often}"
        place = end
