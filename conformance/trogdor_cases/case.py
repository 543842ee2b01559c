"""A case about Trogdor: a requirement and the function that checks it.

The cases are in the modules of this package; `conformance/registry.py` joins them. A case is
registered where it is written, as one of three kinds:

    @trogdor_case("D01", "CoordinatorTest.testTaskDestruction")
    def destroying_an_unknown_task_is_no_error(trogdor: Trogdor) -> None: ...

    @exec_case("G16", "Agent.exec")
    def spec_for_another_node_is_refused(agent: OneTaskAgent) -> None: ...

    @table_case("J20", "PartitionsSpec.newTopic")
    def topics_have_one_partition_by_default() -> None: ...

The first line of the docstring is the requirement. A further case of a requirement has an id that
ends in `.2`, and its docstring is its own.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from coordinator_sim.trogdor.contract import Quirks
from coordinator_sim_conformance.requirements import TROGDOR, Level, Requirement
from coordinator_sim_conformance.script.stage import CaseFailed
from coordinator_sim_conformance.trogdor_cases.one_task import OneTaskAgent, OwnOneTaskAgent
from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Member, Reply, Setup, Trogdor
from coordinator_sim_conformance.trogdor_cases.virtual import VirtualTrogdor


class Scribe:
    """A `Trogdor` that passes everything on, and keeps a transcript.

    Args:
        trogdor: The other one.
    """

    def __init__(self, trogdor: Trogdor) -> None:
        self._trogdor = trogdor
        self.transcript: list[str] = []

    @property
    def now_ms(self) -> int:
        """The present."""
        return self._trogdor.now_ms

    @property
    def slack_ms(self) -> int:
        """See `Trogdor.slack_ms`."""
        return self._trogdor.slack_ms

    @property
    def late_ms(self) -> int:
        """See `Trogdor.late_ms`."""
        return self._trogdor.late_ms

    @property
    def bootstrap(self) -> str:
        """See `Trogdor.bootstrap`."""
        return self._trogdor.bootstrap

    def members(self, group_id: str) -> list[Member]:
        """The members of a group."""
        found = self._trogdor.members(group_id)
        self._note(f"members of {group_id}: {_text(found)}")
        return found

    def at(self, at_ms: int) -> None:
        """Let time pass."""
        self._trogdor.at(at_ms)

    def coordinator(self, method: str, target: str, body: Json = None) -> Reply:
        """Ask the coordinator."""
        reply = self._trogdor.coordinator(method, target, body)
        self._asked(method, target, body, reply)
        return reply

    def agent(self, node: str, method: str, target: str, body: Json = None) -> Reply:
        """Ask an agent."""
        reply = self._trogdor.agent(node, method, target, body)
        self._asked(method, f"{node} {target}", body, reply)
        return reply

    def kill_agent(self, node: str) -> None:
        """End an agent's process."""
        self._note(f"kill the agent of {node}")
        self._trogdor.kill_agent(node)

    def start_agent(self, node: str) -> None:
        """Start an agent."""
        self._note(f"start the agent of {node}")
        self._trogdor.start_agent(node)

    def commands(self, node: str) -> list[str]:
        """The commands that were run on a node."""
        found = self._trogdor.commands(node)
        self._note(f"commands of {node}: {'; '.join(found)}")
        return found

    def calls(self, node: str, worker_id: int) -> dict[str, int]:
        """How often a worker's work was started and stopped."""
        found = self._trogdor.calls(node, worker_id)
        self._note(f"calls of worker {worker_id} on {node}: {found}")
        return found

    def status_requests(self, node: str) -> int:
        """How often the agent of a node was asked for its workers."""
        found = self._trogdor.status_requests(node)
        self._note(f"{node} was asked {found} times")
        return found

    def file(self, path: str) -> bytes | None:
        """The content of a file."""
        found = self._trogdor.file(path)
        self._note(f"{path}: {found!r}")
        return found

    def _asked(self, method: str, target: str, body: Json, reply: Reply) -> None:
        asked = "" if body is None else f" {_text(body)}"
        self._note(f"{method} {target}{asked} -> {reply.status} {_text(reply.body)}")

    def _note(self, line: str) -> None:
        self.transcript.append(f"{self._trogdor.now_ms:>9} {line}")


def _text(body: Json) -> str:
    return body if isinstance(body, str) else msgspec.json.encode(body).decode()


Story = Callable[[Trogdor], None]
F = TypeVar("F", bound=Callable[..., None])

DEFAULT_SETUP: Final = Setup()
"""A coordinator on node01 and an agent on node02."""


@dataclass(frozen=True)
class TrogdorCase(ABC):
    """One case.

    Args:
        case_id: Permanent id.
        requirement: What it checks; it covers no profile.
    """

    case_id: str
    requirement: Requirement

    @abstractmethod
    def play(self) -> tuple[str, ...]:
        """Check this project's Trogdor; return what was said.

        Raises:
            CaseFailed: what is required does not hold.
        """


@dataclass(frozen=True)
class StoryCase(TrogdorCase):
    """A story with a coordinator and agents.

    Args:
        tell: The story.
        setup: The nodes.
        quirks: Whether tasks may hang where those of Kafka's do.
        only_virtual: Why it is played in virtual time alone; empty where it is not.
    """

    tell: Story
    setup: Setup
    quirks: Quirks
    only_virtual: str

    def play(self) -> tuple[str, ...]:
        """Play it in virtual time."""
        return self.play_on(VirtualTrogdor(self.setup, self.quirks))

    def play_on(self, trogdor: Trogdor) -> tuple[str, ...]:
        """Play it on a Trogdor that has just begun.

        Raises:
            CaseFailed: what is required does not hold.
        """
        scribe = Scribe(trogdor)
        try:
            self.tell(scribe)
        except CaseFailed as failed:
            raise CaseFailed(str(failed), tuple(scribe.transcript)) from None
        return tuple(scribe.transcript)


@dataclass(frozen=True)
class ExecCase(TrogdorCase):
    """A case about an agent that runs one task and ends, on this host and in real time."""

    check: Callable[[OneTaskAgent], None]

    def play(self) -> tuple[str, ...]:
        """Check this project's agent."""
        self.check(OwnOneTaskAgent())
        return ()


@dataclass(frozen=True)
class TableCase(TrogdorCase):
    """A case about functions of their arguments alone."""

    check: Callable[[], None]

    def play(self) -> tuple[str, ...]:
        """Check the functions."""
        self.check()
        return ()


def trogdor_case(
    case_id: str,
    *sources: str,
    setup: Setup = DEFAULT_SETUP,
    quirks: Quirks = Quirks.KAFKA,
    is_quirk: bool = False,
    only_virtual: str = "",
) -> Callable[[F], F]:
    """Register a story.

    Args:
        case_id: Id of the requirement, without `TROGDOR-`; a further case of it ends in `.2`.
        sources: Places in Kafka: class and method, or test.
        setup: See `StoryCase`, as for the others.
        quirks: See there.
        is_quirk: Whether Kafka behaves oddly here.
        only_virtual: See there.
    """

    def register(tell: F) -> F:
        requirement = _requirement(case_id, tell, sources, is_quirk=is_quirk)
        whole = f"{TROGDOR}-{case_id}"
        _add(tell, StoryCase(whole, requirement, tell, setup, quirks, only_virtual))
        return tell

    return register


def exec_case(case_id: str, *sources: str, is_quirk: bool = False) -> Callable[[F], F]:
    """Register a case about an agent that runs one task; see `trogdor_case`."""

    def register(check: F) -> F:
        requirement = _requirement(case_id, check, sources, is_quirk=is_quirk)
        _add(check, ExecCase(f"{TROGDOR}-{case_id}", requirement, check))
        return check

    return register


def table_case(case_id: str, *sources: str) -> Callable[[F], F]:
    """Register a case about functions; see `trogdor_case`."""

    def register(check: F) -> F:
        requirement = _requirement(case_id, check, sources, is_quirk=False)
        _add(check, TableCase(f"{TROGDOR}-{case_id}", requirement, check))
        return check

    return register


def _requirement(
    case_id: str, check: Callable[..., None], sources: tuple[str, ...], *, is_quirk: bool
) -> Requirement:
    area = check.__module__.rpartition(".")[2].upper().replace("_", "-")
    return Requirement(
        requirement_id=f"{TROGDOR}-{case_id.partition('.')[0]}",
        title=(check.__doc__ or "").partition("\n")[0].removesuffix("."),
        area=f"{TROGDOR}-{area}",
        families="",
        level=Level.MODEL,
        sources=sources,
        is_quirk=is_quirk,
    )


def _add(check: Callable[..., None], case: TrogdorCase) -> None:
    module = sys.modules[check.__module__]
    cases: list[TrogdorCase] = module.__dict__.setdefault("CASES", [])
    cases.append(case)
