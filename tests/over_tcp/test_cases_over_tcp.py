"""The suite's cases over TCP: on our own server, at every version of every request it offers."""

from collections.abc import Iterator

import pytest

from coordinator_sim.harness.lines import Lines
from coordinator_sim.kafka.api_versions import versions_of
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.requests import GROUP_APIS
from coordinator_sim_conformance.registry import any_cases
from coordinator_sim_conformance.requirements import RELEASES, Level
from coordinator_sim_conformance.running import Ending, Verdict, cases_for, play_case, play_cases
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.lines import LinesTarget
from coordinator_sim_conformance.targets.served import ServedTarget
from coordinator_sim_conformance.targets.target import Capability

CASES = [case for case in any_cases() if isinstance(case, Case)]
FAMILIES = ("4.4", "3.9", "0.10.2")


def versions_to_play() -> list[tuple[str, int]]:
    """Each family with 0 up to the newest version of a group API that it offers.

    Beyond that version every request would be the same again.
    """
    found = []
    for profile in FAMILIES:
        offered = versions_of(profile_named(profile))
        newest = max(offered[api][1] for api in GROUP_APIS if api in offered)
        found += [(profile, version) for version in range(newest + 1)]
    return found


@pytest.fixture(scope="module")
def served() -> Iterator[ServedTarget]:
    """A server in a thread of its own."""
    target = ServedTarget()
    yield target
    target.close()


def no_less_than(profile: str) -> int:
    """How many cases are about what a client can see over the wire."""
    return sum(case.requirement.level is Level.MUST for case in cases_for(CASES, profile))


def check(profile: str, served: ServedTarget) -> None:
    """Play all cases of a profile."""
    endings = list(play_cases(CASES, served, [profile]))

    bad = [
        f"{each.case_id}: {each.reason}"
        for each in endings
        if each.verdict not in {Verdict.PASSED, Verdict.SKIPPED}
    ]
    assert bad == []
    passed = sum(each.verdict is Verdict.PASSED for each in endings)
    assert passed >= no_less_than(profile)


@pytest.mark.parametrize("profile", FAMILIES)
def test_every_case_of_a_client_passes_over_tcp(profile: str, served: ServedTarget) -> None:
    """Nothing that the wire shows differs from what the suite requires."""
    check(profile, served)


@pytest.mark.nightly
@pytest.mark.parametrize("profile", [each for each in RELEASES if each not in FAMILIES])
def test_every_case_of_a_client_passes_over_tcp_as(profile: str, served: ServedTarget) -> None:
    """The wire shows what the suite requires in the profiles between, too."""
    check(profile, served)


def seen(ending: Ending) -> list[list[str]]:
    """What a case saw, line by line; answers of one instant in any order."""
    return [sorted(line.partition(" | ")[2].split("; ")) for line in ending.transcript]


@pytest.mark.parametrize(("profile", "version"), versions_to_play())
def test_every_version_says_over_tcp_what_the_core_says(
    profile: str, version: int, served: ServedTarget
) -> None:
    """Each case with every request at that version, or the nearest offered, as without a wire."""
    core = LinesTarget(
        "core",
        Lines(),
        profile=None,
        capabilities=frozenset({Capability.CLOCK, Capability.TOPICS}),
    )
    compared = 0
    for case in cases_for(CASES, profile):
        over_tcp = play_case(case, served, profile, at_version=version)
        inside = play_case(case, core, profile, at_version=version)
        if Verdict.SKIPPED in (over_tcp.verdict, inside.verdict):
            continue
        compared += 1
        assert (case.case_id, over_tcp.verdict, seen(over_tcp)) == (
            case.case_id,
            inside.verdict,
            seen(inside),
        )
    assert compared > 0
