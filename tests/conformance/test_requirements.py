"""Every case of the registry on the simulator, as each Kafka that has to behave so.

`known_gaps.toml` names what does not pass yet, and why: an entry that passes is an error.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.registry import all_cases
from coordinator_sim_conformance.requirements import FAMILIES, RELEASES
from coordinator_sim_conformance.running import Verdict, play_case
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.simulator import SimulatorTarget

NEWEST = [profile_named(family).name for family in FAMILIES.values()]
GAPS = tomllib.loads(Path(__file__).with_name("known_gaps.toml").read_text())


def marks(case: Case, profile: str) -> Iterator[pytest.MarkDecorator]:
    """What sets a case apart: profiles of the nightly run, known gaps."""
    if profile not in NEWEST:
        yield pytest.mark.nightly
    reason = GAPS.get(profile, {}).get(case.case_id)
    if reason is not None:
        yield pytest.mark.xfail(reason=reason)


@pytest.mark.parametrize(
    ("case", "profile"),
    [
        pytest.param(case, profile, id=f"{case.case_id}-{profile}", marks=[*marks(case, profile)])
        for profile in RELEASES
        for case in all_cases()
        if profile in case.requirement.profiles
    ],
)
def test_simulator_behaves_so(case: Case, profile: str) -> None:
    """The requirement holds, and a traced coordinator says and appends the same."""
    ending = play_case(case, SimulatorTarget(), profile)
    traced = play_case(case, SimulatorTarget(), profile, trace=True)

    transcript = "\n".join(ending.transcript)
    assert ending.verdict is Verdict.PASSED, f"{ending.reason}\n{transcript}"
    assert replace(traced, elapsed_s=ending.elapsed_s) == ending


def test_every_known_gap_names_a_case() -> None:
    """A gap of a case that is gone is no gap."""
    known = {case.case_id for case in all_cases()}
    assert {each for gaps in GAPS.values() for each in gaps} <= known
