"""A correct server passes on a host too slow for a script, once the script's time is stretched."""

import time
from contextlib import closing
from pathlib import Path
from typing import Final

from coordinator_sim_conformance.registry import all_cases
from coordinator_sim_conformance.running import Ending, Verdict, play_case
from coordinator_sim_conformance.targets.choice import addresses_of
from coordinator_sim_conformance.targets.endpoint import Endpoint
from coordinator_sim_conformance.targets.target import Call, Outcome
from coordinator_sim_conformance.targets.wall_time import Margins, WallTimeTarget
from coordinator_sim_conformance.wire.security import Security
from tests.over_tcp.test_endpoint import FRIENDLY, serving

HELD_UP_S: Final = 0.3
"""How much longer one command takes than the others."""
NARROW: Final = "TXN-016"
"""It commits 100 ms before a session ends, and looks 100 ms after it."""


class HeldUp(WallTimeTarget):
    """An endpoint seen from a host that is busy with something else before it commits."""

    def call(self, call: Call) -> Outcome:
        """Send a request, a commit late."""
        if call.api == "TxnOffsetCommit":
            time.sleep(HELD_UP_S)
        return super().call(call)


def played(endpoint: Endpoint, margins: Margins) -> Ending:
    """How the narrow case ends."""
    case = next(each for each in all_cases() if each.case_id == NARROW)
    label = f"{case.case_id}-{margins.factor}-{margins.stretch}"
    with closing(HeldUp(endpoint, label, margins)) as target:
        return play_case(case, target, "4.4")


def test_stretched_time_gives_a_slow_host_a_chance(tmp_path: Path) -> None:
    """Wider margins alone do not help where a command takes longer than the script leaves."""
    with serving(tmp_path, *FRIENDLY) as bootstrap:
        endpoint = Endpoint(addresses_of(bootstrap), Security())
        in_script_time = played(endpoint, Margins(2))
        stretched = played(endpoint, Margins(2, stretch=8))
        endpoint.clean_up()

    assert in_script_time.verdict is Verdict.FAILED
    assert (stretched.verdict, stretched.reason) == (Verdict.PASSED, "")
