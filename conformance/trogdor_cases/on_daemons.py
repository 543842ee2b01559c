"""Plays cases of Trogdor on processes of this host; see `processes`."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import httpx
from msgspec.structs import replace

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.script.stage import CaseFailed
from coordinator_sim_conformance.trogdor_cases.case import ExecCase, StoryCase, TrogdorCase
from coordinator_sim_conformance.trogdor_cases.one_task import Exit
from coordinator_sim_conformance.trogdor_cases.processes import (
    Daemons,
    ProcessTrogdor,
    free_port,
)
from coordinator_sim_conformance.trogdor_cases.task_specs import NODE, PACKAGE
from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Setup

_TASK_TIMEOUT_S: Final = 20
_TRIES: Final = 5
"""Agents for one task: Kafka's may hang in its shutdown hook, where it waits for Jetty's threads.

`JsonRestServer.beginShutdown` joins Jetty's pool, which now and then goes on. One agent of 50 hung
on a busy host, each after the end of its task was printed; it has no exit code then.
"""
_HOOK: Final = "Running agent shutdown hook."
_OF_THE_PROCESS: Final = ("Starting agent process.", _HOOK)
"""Lines of Kafka's agent that are not about the task."""


class OneTaskProcess:
    """Starts an agent as a process for each task.

    Args:
        daemons: See `Daemons`.
        folder: For its configuration; it exists.
    """

    def __init__(self, daemons: Daemons, folder: Path) -> None:
        self._config = folder / "one-task.json"
        platform = f"{PACKAGE}.basic.BasicPlatform"
        # Kafka's agent listens while it runs its one task.
        nodes = {name: {"trogdor.agent.port": str(free_port())} for name in (NODE, "node09")}
        self._config.write_text(json.dumps({"platform": platform, "nodes": nodes}), "utf-8")
        self._command = (*daemons.agent, "-c", str(self._config), "-n", NODE, "--exec")

    def run(self, spec: Json) -> Exit:
        """Run a task until it is over; again on another agent where one hung at its own end.

        Raises:
            CaseFailed: the agent does not end.
        """
        ended = next(filter(None, (self._ended(spec) for _ in range(_TRIES))), None)
        if ended is None:
            raise CaseFailed(f"{_TRIES} agents hung in their shutdown hooks", ())
        return ended

    def _ended(self, spec: Json) -> Exit | None:
        """How an agent ends; None where it hangs when its task is over."""
        try:
            done = subprocess.run(  # noqa: S603 - a daemon that the caller names
                (*self._command, json.dumps(spec)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_TASK_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            said = (late.output or b"").decode()
            if said.endswith(f"{_HOOK}\n"):
                return None
            raise CaseFailed(f"the agent does not end; it said {said!r}", ()) from None
        lines = done.stdout.decode().splitlines(keepends=True)
        said = "".join(line for line in lines if line.rstrip("\n") not in _OF_THE_PROCESS)
        return Exit(done.returncode, said)


def parts_for_daemons(cases: Iterable[TrogdorCase], part_count: int) -> list[list[StoryCase]]:
    """The stories that can be played on daemons, in parts that may be played at the same time.

    Args:
        cases: Cases to choose from.
        part_count: Parts of the stories with the commonest nodes; each other setup is a part.
    """
    by_setup: dict[str, list[StoryCase]] = {}
    for case in cases:
        if isinstance(case, StoryCase) and not case.only_virtual:
            by_setup.setdefault(repr(_without_restarts(case.setup)), []).append(case)
    commonest, *others = sorted(by_setup.values(), key=len, reverse=True)
    return [*(commonest[first::part_count] for first in range(part_count)), *others]


def play_stories(stories: list[StoryCase], daemons: Daemons) -> Iterator[tuple[str, str]]:
    """Play stories that share their nodes; yield each case's id, and why it failed or nothing."""
    with _started(stories[0], daemons) as trogdor:
        for story in stories:
            yield story.case_id, _outcome(partial(_play, story, trogdor))


@contextmanager
def _started(story: StoryCase, daemons: Daemons) -> Iterator[ProcessTrogdor]:
    """Processes for the nodes of a story."""
    nodes = _without_restarts(story.setup)
    with (
        tempfile.TemporaryDirectory(prefix="trogdor-") as folder,
        ProcessTrogdor(nodes, daemons, Path(folder)) as trogdor,
    ):
        yield trogdor


def play_one_task_cases(
    cases: Iterable[TrogdorCase], daemons: Daemons
) -> Iterator[tuple[str, str]]:
    """Play the cases of agents for one task; yield each id, and why it failed or nothing.

    One that fails is played once more: a busy host may be later than its slack.
    """
    with tempfile.TemporaryDirectory(prefix="trogdor-") as folder:
        agent = OneTaskProcess(daemons, Path(folder))
        for case in cases:
            if isinstance(case, ExecCase):
                check = partial(case.check, agent)
                yield case.case_id, _outcome(check) and _outcome(check)


def _play(story: StoryCase, trogdor: ProcessTrogdor) -> None:
    trogdor.begin(story.setup.restarts)
    story.play_on(trogdor)


def _outcome(play: Callable[[], None]) -> str:
    """Why a case failed, with its last requests; empty where it did not."""
    try:
        play()
    except CaseFailed as failed:
        return "\n".join((str(failed), *failed.transcript[-4:]))
    except (DataError, httpx.TransportError) as broken:
        return f"{type(broken).__name__}: {broken}"
    return ""


def _without_restarts(setup: Setup) -> Setup:
    return replace(setup, restarts=0)
