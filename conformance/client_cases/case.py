"""A case about a client port: a requirement and the function that checks it.

The cases are in the modules of this package; `conformance/registry.py` joins them. A case is
registered where it is written:

    @client_case("C-JOIN-03", "AbstractCoordinatorTest.testJoinGroupRequestTimeout...")
    def join_timeout_has_a_lower_bound(bench: Bench) -> None: ...

The first line of its docstring is the requirement. More than one function may check it: the second
one's id ends in `.2`, and its docstring is its own.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from coordinator_sim_conformance.client_cases.bench import Bench
from coordinator_sim_conformance.requirements import Level, Requirement

CaseFunction = Callable[[Bench], None]

CLIENTS: Final = "clients"
"""What stands for a profile where the subject is a client: no broker's release changes it."""


@dataclass(frozen=True)
class ClientCase:
    """One case. The area is the id up to its number; its requirement covers no profile."""

    case_id: str
    requirement: Requirement
    check: CaseFunction

    def play(self) -> tuple[str, ...]:
        """Check on fresh ports; return the traffic.

        Raises:
            CaseFailed: a port did not do what is required.
        """
        bench = Bench()
        self.check(bench)
        return tuple(bench.transcript)


def client_case(case_id: str, *sources: str) -> Callable[[CaseFunction], CaseFunction]:
    """Register a function as a case of the module it stands in.

    Args:
        case_id: Permanent id of the requirement; a further case of it ends in `.2` and so on.
        sources: Places in Kafka: class or file of trunk, and the method.
    """

    def register(check: CaseFunction) -> CaseFunction:
        requirement_id = case_id.partition(".")[0]
        requirement = Requirement(
            requirement_id=requirement_id,
            title=(check.__doc__ or "").partition("\n")[0].removesuffix("."),
            area=requirement_id.rpartition("-")[0],
            families="",
            level=Level.MODEL,
            sources=sources,
        )
        module = sys.modules[check.__module__]
        cases: list[ClientCase] = module.__dict__.setdefault("CASES", [])
        cases.append(ClientCase(case_id, requirement, check))
        return check

    return register
