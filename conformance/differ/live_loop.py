"""Many small programs side by side on a running endpoint, each judged as soon as it ends.

A program that differs, or for which this host was too slow, is played again with everything two and
four times as long: a difference counts when two plays show it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import count
from threading import Lock
from time import perf_counter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.differ.comparison import Difference
from coordinator_sim_conformance.differ.endpoint_play import EndpointPlay, SentFrame
from coordinator_sim_conformance.differ.explained import Explanation, explanation_of
from coordinator_sim_conformance.differ.live_comparison import (
    Compared,
    TimedScript,
    compared,
    expected,
)
from coordinator_sim_conformance.differ.live_reference import creates_topics
from coordinator_sim_conformance.differ.loop import Exchange, Failure, Outcome, Plan
from coordinator_sim_conformance.differ.references import Reference
from coordinator_sim_conformance.differ.timed_programs import Clearance, drawn, stretched
from coordinator_sim_conformance.targets.endpoint import Endpoint
from coordinator_sim_conformance.targets.target import ConnectionEnded

Json = dict[str, Any]

SIDE_BY_SIDE: Final = 24
"""Programs played at once: they mostly wait."""
_SLOWER: Final = (2, 4, 4)
"""How many times as long everything lasts when a program is played again."""


class Judged(Struct, frozen=True):
    """How a play of a program ended.

    Args:
        requests: Number of requests that were compared.
        exchanges: Both sides, up to and with the command of the difference.
        difference: The first difference that nothing explains, if any.
        explained: Ids of the explanations used, as often as they were.
        frames: Everything on the wire.
        is_late: Whether the play says nothing: this host was too slow, or no two plays agree.
        again: How often it was played again.
    """

    requests: int
    exchanges: tuple[Exchange, ...]
    difference: Difference | None
    explained: tuple[str, ...] = ()
    frames: tuple[SentFrame, ...] = ()
    is_late: bool = False
    again: int = 0


class LiveSession:
    """Plays and judges programs on one endpoint; may be used by several threads.

    Args:
        endpoint: Where they are played.
        reference: The endpoint as programs see it.
        explanations: Understood differences.
    """

    def __init__(
        self, endpoint: Endpoint, reference: Reference, explanations: tuple[Explanation, ...]
    ) -> None:
        self.endpoint = endpoint
        self.reference = reference
        self._explanations = explanations
        self._labels = count(1)
        self._topics: dict[tuple[str, int], str] = {}
        self._lock = Lock()

    def judged(self, script: TimedScript) -> Judged:
        """Play a script until a play agrees, or two differ in the same way.

        What only one play shows may be the endpoint's own doing, such as its removal of groups
        without members and offsets every ten minutes.

        Raises:
            ConnectionEnded: the endpoint is gone.
            DataError: it does not answer.
        """
        seen: dict[str, Judged] = {}
        last = self.played(script, 1)
        for again, factor in enumerate((*_SLOWER, 0)):
            if not last.is_late:
                if last.difference is None:
                    return replace(last, again=again)
                signature = last.difference.signature
                if signature in seen:
                    return replace(seen[signature], again=again)
                seen[signature] = last
            if factor:
                last = self._slower(script, factor)
        return replace(last, requests=0, difference=None, is_late=True, again=len(_SLOWER))

    def _slower(self, script: TimedScript, factor: int) -> Judged:
        """Play a script more slowly, if its requests are clear of timers then, too."""
        slower = TimedScript(tuple(stretched(script.commands, factor)), script.uuids)
        clear = expected(slower, self.reference.profile, Clearance(factor)).clear
        if clear < len(slower.commands):
            return self.played(script, 1)
        return self.played(slower, factor)

    def played(self, script: TimedScript, factor: int) -> Judged:
        """Play a script once.

        Raises:
            ConnectionEnded: the endpoint is gone.
            DataError: it does not answer.
        """
        clearance = Clearance(factor)
        mine = expected(script, self.reference.profile, clearance)
        with self._lock:
            label = f"{next(self._labels)}"
            topics = self._topics_of(script.commands)
        play = EndpointPlay(self.endpoint, label, clearance, topics)
        played = play.play(script.commands, mine.drawn, mine.answered(script.commands))
        play.leave()
        both = compared(script, played, mine.drawn, self.reference.profile, clearance)
        judged = self._judge(both, tuple(played.frames))
        if played.late_ms <= clearance.slack_ms:
            return judged
        return Judged(0, judged.exchanges, None, frames=judged.frames, is_late=True)

    def _topics_of(self, commands: Sequence[Json]) -> dict[str, str]:
        """Return the endpoint's names of the topics that a script sets; new ones are created."""
        found: dict[str, str] = {}
        if not creates_topics(self.endpoint):
            return found
        for command in commands:
            for topic in command.get("set", ()) if command["op"] == "topics" else ():
                wanted = topic["name"], topic["partitions"]
                if wanted not in self._topics:
                    name = f"{self.endpoint.run}-{wanted[0]}-{wanted[1]}"
                    self.endpoint.create_topic(name, wanted[1])
                    self._topics[wanted] = name
                found[wanted[0]] = self._topics[wanted]
        return found

    def _judge(self, both: Compared, frames: tuple[SentFrame, ...]) -> Judged:
        explained: list[str] = []
        for index, difference in both.differences():
            found = explanation_of(self._explanations, self.reference.name, difference)
            before = Compared(both.script, both.exchanges[: index + 1])
            if found is None:
                return Judged(
                    before.requests, before.exchanges, difference, tuple(explained), frames
                )
            explained.append(found.explanation_id)
            if not found.continues:
                return Judged(before.requests, before.exchanges, None, tuple(explained), frames)
        return Judged(both.requests, both.exchanges, None, tuple(explained), frames)


class LiveOutcome(Struct, frozen=True):
    """Result of a run, and the play that failed first."""

    outcome: Outcome
    failed: Judged | None


def run_live(plan: Plan, session: LiveSession, progress: Callable[[int], None]) -> LiveOutcome:
    """Play programs until as many requests were compared as the plan asks for.

    Args:
        plan: Parameters of the run; its steps are requests.
        session: Plays them.
        progress: Called with the number of requests compared so far.
    """
    started = perf_counter()
    tally = _Tally(plan)
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        running: dict[Future[Judged], int] = {}
        seeds = plan.program_seeds()
        while True:
            _fill(pool, running, seeds, tally, session)
            if not running:
                break
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for each in sorted(ended, key=running.__getitem__):
                tally.add(running.pop(each), each)
            progress(min(tally.requests, plan.steps))
    return tally.outcome(perf_counter() - started)


def _fill(
    pool: ThreadPoolExecutor,
    running: dict[Future[Judged], int],
    seeds: Iterator[int],
    tally: "_Tally",
    session: LiveSession,
) -> None:
    """Begin as many programs as there is room and need for."""
    size = tally.plan.program_steps
    while len(running) < SIDE_BY_SIDE and tally.wants(len(running) * size):
        seed = next(seeds, None)
        if seed is None:
            return
        left = min(size, max(1, tally.plan.steps - tally.requests - len(running) * size))
        running[pool.submit(_one, session, tally.plan, seed, left)] = seed


def _one(session: LiveSession, plan: Plan, seed: int, requests: int) -> Judged:
    script = TimedScript.of(drawn(plan.reference, seed, requests, plan.without))
    return session.judged(script)


class _Tally:
    """Counts what ended programs say."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.requests = 0
        self._programs = 0
        self._again = 0
        self._unplayed: list[int] = []
        self._explained: Counter[str] = Counter()
        self._kinds: dict[str, list[int]] = {}
        self._failures: dict[int, Judged] = {}
        self._gone: dict[int, str] = {}

    def wants(self, under_way: int) -> bool:
        """Whether another program should begin beside so many requests under way."""
        stops = self._failures and not self.plan.keeps_going
        too_slow = len(self._unplayed) > max(SIDE_BY_SIDE, self._programs // 2)
        return not (self._gone or stops or too_slow) and (
            self.requests + under_way < self.plan.steps
        )

    def add(self, seed: int, ended: "Future[Judged]") -> None:
        """Count a program."""
        try:
            judged = ended.result()
        except (ConnectionEnded, DataError) as gone:
            self._gone[seed] = str(gone)
            return
        self._programs += 1
        self.requests += judged.requests
        self._again += judged.again > 0
        self._explained.update(judged.explained)
        if judged.is_late:
            self._unplayed.append(seed)
        elif judged.difference is not None:
            self._kinds.setdefault(judged.difference.signature, []).append(seed)
            self._failures[seed] = judged

    def outcome(self, seconds: float) -> LiveOutcome:
        """Return what there is to tell."""
        seed = min(self._failures, default=None)
        failed = None if seed is None else self._failures[seed]
        failure = None
        if seed is not None and failed is not None and failed.difference is not None:
            failure = Failure(seed, failed.exchanges, failed.difference)
        gone = "".join(
            f"{text}; programs under way: {', '.join(map(str, sorted(self._gone)))}"
            for text in list(self._gone.values())[:1]
        )
        outcome = Outcome(
            self.requests,
            self._programs,
            seconds,
            failure,
            dict(sorted(self._explained.items())),
            self._kinds,
            again=self._again,
            unplayed=tuple(sorted(self._unplayed)),
            gone=gone,
        )
        return LiveOutcome(outcome, failed)
