"""A case about a scenario: what its run must show.

Registered where it is written, under the scenario's name; a second one of a scenario ends in `.2`:

    @shows("connect-leader-lost")
    def lost_leaders_work_moves_at_once(seen: Seen) -> None: ...

The first line of the docstring says what is seen. The invariants are checked with every case.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from coordinator_sim_conformance.scenario_cases.seen import Seen
from coordinator_sim_scenarios.catalog import scenario_named

CaseFunction = Callable[[Seen], None]


@dataclass(frozen=True)
class ScenarioCase:
    """One case.

    Args:
        case_id: Name of the scenario, and a number after a dot from the second case on.
        title: Expected result.
        check: Raises CaseFailed where the result differs.
    """

    case_id: str
    title: str
    check: CaseFunction

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return self.case_id.partition(".")[0]

    def play(self) -> None:
        """Run the scenario and check it.

        Raises:
            CaseFailed: the scenario does not show what it must.
            ScenarioError: the catalogue has no such scenario.
        """
        seen = Seen(scenario_named(self.scenario))
        self.check(seen)
        seen.expect_invariants()


def shows(case_id: str) -> Callable[[CaseFunction], CaseFunction]:
    """Register a function as a case of the module it stands in.

    Args:
        case_id: Name of the scenario; a further case of it ends in `.2` and so on.
    """

    def register(check: CaseFunction) -> CaseFunction:
        module = sys.modules[check.__module__]
        cases: list[ScenarioCase] = module.__dict__.setdefault("CASES", [])
        title = (check.__doc__ or "").partition("\n")[0].removesuffix(".")
        cases.append(ScenarioCase(case_id, title, check))
        return check

    return register
