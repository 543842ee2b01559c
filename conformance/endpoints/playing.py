"""Plays cases on endpoints that the suite starts: one that ends or hangs is started again.

Cases play side by side, so a process that ends takes others' cases with it. Those that were under
way are played again, each with a process of its own: where that ends too, it is the case's verdict.
The other cases go on in a fresh process.

A case that waits and does not pass may have failed by a host that was busy with all the others. It
is played again in the most stretched time, once only those are under way that wait for long: they
take next to nothing of a host. So a run of what fails often takes little longer than one that
passes.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Barrier, BrokenBarrierError, Semaphore
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.endpoints import process
from coordinator_sim_conformance.endpoints.named import Named, Variant
from coordinator_sim_conformance.running import NOT_PASSED, Ending, Verdict
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.endpoint import Endpoint
from coordinator_sim_conformance.targets.foreign import (
    ATTEMPTS,
    SIDE_BY_SIDE,
    asked_by,
    longest_first,
    played,
    waits_s,
)
from coordinator_sim_conformance.targets.target import Declared
from coordinator_sim_conformance.wire.security import Security

Say = Callable[[str], None]
_ANY: Final = 1 << 20
"""A number of processes that is no bound."""
_IN_CALM: Final = 12
"""Cases side by side when what may have failed by a busy host is played again: nearly all of the
stretched time is waiting."""
_BRIEF_S: Final = 10
"""Cases that wait longer are not played again in calm: their margins are small beside it."""


class Host(Struct, frozen=True):
    """A running endpoint, and the watchdog of its process."""

    endpoint: Endpoint
    watchdog: process.Watchdog


class Fleet:
    """The variants of an endpoint, started when cases are played, each in a process of its own.

    Args:
        named: The endpoint.
        folder: Existing folder for programs, settings, data and output.
        say: Told of processes that end, and of how far a run is.
        hangs_after_s: How long a process may leave ApiVersions without an answer, in seconds.
        processes: How many processes may run side by side; None for as many as there are variants
            and cases to be played alone.
    """

    def __init__(
        self,
        named: Named,
        folder: Path,
        say: Say,
        hangs_after_s: float = process.HANGS_AFTER_S,
        processes: int | None = None,
    ) -> None:
        self._named = named
        self._folder = folder
        self._say = say
        self._hangs_after_s = hangs_after_s
        self._most = processes
        self._may_run = Semaphore(processes or _ANY)
        self._starts = count(1)
        self._running: dict[int, process.Server] = {}
        self._is_stopped = False

    def play(self, cases: Iterable[Case], profile: str) -> Iterator[Ending]:
        """Play cases, each on the variant that has what it asks for; the variants side by side.

        Args:
            cases: Cases of that profile.
            profile: Profile whose behaviour is required.

        Yields:
            How each case ended, as soon as it did.

        Raises:
            DataError: a process cannot be started, or ends before any case begins.
            MissingDependencyError: what the endpoint needs is not installed.
        """
        allotted: dict[str, list[Case]] = {}
        for case in longest_first(cases, profile):
            variant = self._named.variant_for(asked_by(case, profile))
            allotted.setdefault(variant.name, []).append(case)
        chosen = [each for each in self._named.variants if each.name in allotted]
        if not chosen:
            return
        self._named.prepare(self._folder)
        everything = [case for of_variant in allotted.values() for case in of_variant]
        brief = {each.case_id for each in everything if waits_s(each, profile) <= _BRIEF_S}
        late: dict[str, Ending] = {}
        with ThreadPoolExecutor(1) as pool:
            again: Future[list[Ending]] | None = None
            try:
                for ending in self._side_by_side(chosen, allotted, profile):
                    if ending.case_id in brief and _is_doubtful(ending):
                        late[ending.case_id] = ending
                    else:
                        yield ending
                    brief.discard(ending.case_id)
                    if late and not brief and again is None:
                        again = pool.submit(self._in_calm, chosen, allotted, profile, late)
                if again is not None:
                    yield from again.result()
            except BaseException:
                self._stop()
                raise

    def _in_calm(
        self,
        chosen: list[Variant],
        allotted: dict[str, list[Case]],
        profile: str,
        before: dict[str, Ending],
    ) -> list[Ending]:
        """Play cases again, the variants side by side; return how each ended."""

        def play(variant: Variant) -> list[Ending]:
            cases = [case for case in allotted[variant.name] if case.case_id in before]
            return self._played_in_calm(variant, cases, profile, before) if cases else []

        with ThreadPoolExecutor(len(chosen)) as pool:
            return list(chain.from_iterable(pool.map(play, chosen)))

    def _played_in_calm(
        self, variant: Variant, cases: list[Case], profile: str, before: dict[str, Ending]
    ) -> list[Ending]:
        """Play cases in the most stretched time; where a process ends, what was before stays."""
        endings = []
        with self._hosted(variant, profile) as host, ThreadPoolExecutor(_IN_CALM) as pool:
            playing = [
                pool.submit(played, host.endpoint, case, profile, ATTEMPTS[-1:]) for case in cases
            ]
            for each in as_completed(playing):
                ending = each.result()
                has_ended = ending.verdict in NOT_PASSED and host.watchdog.asked_problem()
                endings.append(before[ending.case_id] if has_ended else ending)
        return endings

    def _side_by_side(
        self, chosen: list[Variant], allotted: dict[str, list[Case]], profile: str
    ) -> Iterator[Ending]:
        """Play the cases of variants, once all have started."""
        most = self._most or len(chosen)
        if len(chosen) > most:
            for first in range(0, len(chosen), most):
                yield from self._side_by_side(chosen[first : first + most], allotted, profile)
            return
        endings: SimpleQueue[Ending | None] = SimpleQueue()
        all_started = Barrier(len(chosen))

        def play(variant: Variant) -> None:
            try:
                for ending in self._played(variant, allotted[variant.name], profile, all_started):
                    endings.put(ending)
            finally:
                all_started.abort()
                endings.put(None)

        with ThreadPoolExecutor(len(chosen)) as pool:
            try:
                runs = [pool.submit(play, variant) for variant in chosen]
                for _ in chosen:
                    yield from iter(endings.get, None)
            except BaseException:
                self._stop()
                raise
        for run in runs:
            run.result()

    def _played(
        self, variant: Variant, cases: list[Case], profile: str, all_started: Barrier
    ) -> Iterator[Ending]:
        """Play cases on one variant, with as many processes as it takes."""
        alone: list[Future[Ending]] = []
        waiting = cases
        with ThreadPoolExecutor(self._named.at_once) as pool:
            while waiting:
                with self._hosted(variant, profile) as host:
                    with suppress(BrokenBarrierError):
                        all_started.wait()
                    unclear = yield from _played_side_by_side(host, waiting, profile)
                    problem = host.watchdog.problem()
                    tail, said = host.watchdog.tail(), host.watchdog.last_words()
                begun = [(case, ending) for case, ending in unclear if ending is not None]
                if unclear and not begun:
                    raise DataError(f"{self._named.name}: {problem}: {said}")
                if len(waiting) == 1 and begun:
                    yield _blamed(begun[0][1], problem, tail)
                    return
                if begun:
                    self._say(
                        f"{self._named.name} ({variant.name}): {problem} ({said}) while "
                        f"{len(begun)} cases were under way: each is played again with a process "
                        "of its own"
                    )
                alone += [pool.submit(self._alone, variant, case, profile) for case, _ in begun]
                waiting = [case for case, ending in unclear if ending is None]
            for each in as_completed(alone):
                yield each.result()

    def _alone(self, variant: Variant, case: Case, profile: str) -> Ending:
        """Play a case with a process of its own; how that ended counts."""
        with self._hosted(variant, profile) as host:
            return _judged(host, case, profile)

    def _stop(self) -> None:
        """End all processes, so that the cases that wait for them end too."""
        self._is_stopped = True
        for server in list(self._running.values()):
            server.process.kill()

    @contextmanager
    def _hosted(self, variant: Variant, profile: str) -> Iterator[Host]:
        """Start a variant, and ask it what it is."""
        if self._is_stopped:
            raise DataError(f"{self._named.name}: the run was stopped")
        number = next(self._starts)
        folder = self._folder / f"{variant.name}-{number}"
        folder.mkdir()
        start = self._named.start
        with (
            self._may_run,
            start(self._folder, folder, variant.settings, profile) as server,
        ):
            # Known before it is asked: `_stop` may be called between any two lines of this.
            self._running[number] = server
            try:
                if self._is_stopped:
                    raise DataError(f"{self._named.name}: the run was stopped")
                host, _, port = server.bootstrap.rpartition(":")
                declared = Declared(
                    name=self._named.name,
                    settings=dict(variant.has),
                    newest=variant.newest,
                    lacks=variant.lacks,
                )
                with closing(process.Watchdog(server, self._hangs_after_s)) as watchdog:
                    address = [(host, int(port))]
                    endpoint = Endpoint(address, Security(), declared, watchdog.problem)
                    with closing(endpoint):
                        yield Host(endpoint, watchdog)
            finally:
                del self._running[number]


_Unclear = list[tuple[Case, Ending | None]]
"""Cases without a verdict, as their process has ended; with how they ended if they had begun."""


def _played_side_by_side(
    host: Host, cases: list[Case], profile: str
) -> Generator[Ending, None, _Unclear]:
    """Play cases in one process, yield how they ended, and return those without a verdict."""

    def play(case: Case) -> tuple[Ending | None, bool]:
        if host.watchdog.problem():
            return None, False
        is_timed = 0 < waits_s(case, profile) <= _BRIEF_S
        attempts = ATTEMPTS[:-1] if is_timed else ATTEMPTS
        ending = played(host.endpoint, case, profile, attempts)
        return ending, ending.verdict in NOT_PASSED and bool(host.watchdog.asked_problem())

    unclear: _Unclear = []
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        playing = {pool.submit(play, case): case for case in cases}
        for each in as_completed(playing):
            ending, is_suspect = each.result()
            if ending is None or is_suspect:
                unclear.append((playing[each], ending))
            else:
                yield ending
    return unclear


def _is_doubtful(ending: Ending) -> bool:
    """Whether a case did not pass in the time that it was given so far."""
    is_given_all = ending.margins == ATTEMPTS[-1].factor
    has_ended = ending.reason.startswith(process.ENDED)
    return ending.verdict in NOT_PASSED and not has_ended and not is_given_all


def _judged(host: Host, case: Case, profile: str) -> Ending:
    """Play a case while no other plays; what becomes of the process is its verdict."""
    ending = played(host.endpoint, case, profile)
    if ending.verdict not in NOT_PASSED or not host.watchdog.asked_problem():
        return ending
    return _blamed(ending, host.watchdog.problem(), host.watchdog.tail())


def _blamed(ending: Ending, problem: str, tail: list[str]) -> Ending:
    """Return the ending of a case that was alone with a process when it ended."""
    said = [f"  {line}" for line in tail]
    return replace(
        ending,
        verdict=Verdict.HUNG if problem.startswith(process.HANGS) else Verdict.CRASHED,
        reason=problem,
        transcript=(*ending.transcript, "the last that the process wrote:", *said)
        if said
        else ending.transcript,
    )


@contextmanager
def fleet_of(named: Named, say: Say, processes: int | None = None) -> Iterator[Fleet]:
    """Return the fleet of an endpoint, whose data and output are removed at the end."""
    with TemporaryDirectory(prefix="conformance-") as folder:
        yield Fleet(named, Path(folder), say, processes=processes)
