"""A case about frames: a requirement and the function that checks it.

The cases are in the modules of this package; `conformance/registry.py` joins them. A case is
registered where it is written:

    @wire_case("FRAME-001", "SocketServer.parseRequestHeader")
    def unknown_api_key(story: Story) -> None: ...

The first line of its docstring is the requirement; its area is the id up to the first hyphen.
"""

import sys
from collections.abc import Callable
from typing import Final

from coordinator_sim_conformance.requirements import FAMILIES, RELEASES, Level, Requirement
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.reach import Reachable
from coordinator_sim_conformance.targets.target import Target, Unsupported, World
from coordinator_sim_conformance.wire_cases.story import Story

CaseFunction = Callable[[Story], None]

_SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    # Where time is moved by hand nobody would let the linger of 4.0 and 4.1 pass.
    "group.coordinator.append.linger.ms": "0",
}
_TOPICS: Final = {"t": 1}


class WireCase(Case, frozen=True, kw_only=True):
    """One case.

    Args:
        check: Tells the story, and fails where the broker does.
    """

    check: CaseFunction

    def play(
        self, target: Target, profile: str, *, trace: bool = False, at_version: int | None = None
    ) -> tuple[str, ...]:
        """Play it on a broker of its own; return what was asked and answered.

        Args:
            target: Target to play it on.
            profile: Profile whose behaviour is required.
            trace: Whether to trace a target that can be traced.
            at_version: Not for these cases: versions are what they are about.

        Raises:
            CaseFailed: the target does not behave as required.
            Unsupported: the target has no sockets, or does not offer the API.
        """
        del at_version
        if not isinstance(target, Reachable):
            raise Unsupported(f"{target.name} has no socket of its own")
        target.start(World(profile=profile, settings=_SETTINGS, topics=dict(_TOPICS), trace=trace))
        story = Story(target.reach())
        try:
            self.check(story)
        finally:
            story.close()
        return tuple(story.transcript)


def wire_case(
    case_id: str, *sources: str, title: str = "", since: str = ""
) -> Callable[[CaseFunction], CaseFunction]:
    """Register a function as a case of the module it stands in.

    Args:
        case_id: Permanent id.
        sources: Places in Kafka: class and method.
        title: The requirement; by default the first line of the docstring.
        since: First release that must do so; empty for all.
    """

    def register(check: CaseFunction) -> CaseFunction:
        said = title or (check.__doc__ or "").partition("\n")[0].removesuffix(".")
        requirement = Requirement(
            requirement_id=case_id,
            title=said,
            area=case_id.partition("-")[0],
            families="".join(FAMILIES),
            level=Level.MUST,
            sources=sources,
            since=since,
            verified_on=(RELEASES["3.9"], RELEASES["4.4"]),
        )
        module = sys.modules[check.__module__]
        cases: list[WireCase] = module.__dict__.setdefault("CASES", [])
        cases.append(WireCase(case_id, said, requirement, check=check))
        return check

    return register
