"""The suite's cases over TCP: on our own server, at every version of every request it offers."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from coordinator_sim.harness.lines import Lines
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.api_versions import versions_of
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.requests import GROUP_APIS
from coordinator_sim_conformance.registry import any_cases
from coordinator_sim_conformance.requirements import RELEASES, Level
from coordinator_sim_conformance.running import Ending, Verdict, cases_for, play_case, play_cases
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.lines import LinesTarget
from coordinator_sim_conformance.targets.served import ServedTarget
from coordinator_sim_conformance.targets.target import Call, Capability, Outcome

CASES = [case for case in any_cases() if isinstance(case, Case)]
FAMILIES = ("4.4", "3.9", "0.10.2")
OVER_TCP = ("4.4", "0.10.2")
"""Releases of a push. Those between are played without a wire, and 4.4 compares their versions."""


def versions_to_play(profile: str) -> range:
    """From 0 up to the newest version of a group API that a Kafka offers.

    Beyond that version every request would be the same again.
    """
    offered = versions_of(profile_named(profile))
    return range(1 + max(offered[api][1] for api in GROUP_APIS if api in offered))


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


@pytest.mark.parametrize("profile", OVER_TCP)
def test_every_case_of_a_client_passes_over_tcp(profile: str, served: ServedTarget) -> None:
    """The wire shows what the suite requires, in the newest release and in the oldest."""
    check(profile, served)


@pytest.mark.nightly
@pytest.mark.parametrize("profile", [each for each in RELEASES if each not in OVER_TCP])
def test_every_case_of_a_client_passes_over_tcp_as(profile: str, served: ServedTarget) -> None:
    """The wire shows what the suite requires in the profiles between, too."""
    check(profile, served)


def seen(ending: Ending) -> list[list[str]]:
    """What a case saw, line by line; answers of one instant in any order."""
    return [sorted(line.partition(" | ")[2].split("; ")) for line in ending.transcript]


class Exchange(NamedTuple):
    """A kind of requests or answers."""

    api: str
    version: int
    says: object


def kind_of(value: object, field: str = "") -> object:
    """What a request or an answer says, without its names, counts and amounts."""
    match value:
        case dict():
            return tuple((name, kind_of(each, name)) for name, each in value.items())
        case list():
            return frozenset(kind_of(each, field) for each in value)
        case str():
            return bool(value)
        case int() if field != "errorCode" and not isinstance(value, bool):
            return (value > 0) - (value < 0)
    return value


class WatchedCore(LinesTarget):
    """The core without a wire, and which kinds of requests and answers it has had."""

    def __init__(self) -> None:
        offered = frozenset({Capability.CLOCK, Capability.TOPICS})
        super().__init__("core", Lines(), profile=None, capabilities=offered)
        self.exchanges: set[Exchange] = set()
        self._asked: dict[int, tuple[str, int]] = {}

    def call(self, call: Call) -> Outcome:
        """Send a request."""
        self._asked[call.call_id] = (call.api, call.version)
        self.exchanges.add(Exchange(*self._asked[call.call_id], says=kind_of(call.data)))
        return self._watched(super().call(call))

    def advance(self, ms: int, *, early: bool = False) -> Outcome:
        """Let time pass."""
        return self._watched(super().advance(ms, early=early))

    def _watched(self, outcome: Outcome) -> Outcome:
        for answer in outcome.answers:
            asked = self._asked[answer.call_id]
            self.exchanges.add(Exchange(*asked, says=(kind_of(answer.data),)))
        return outcome


def assert_same_over_tcp(profile: str, served: ServedTarget, *, every_case: bool) -> None:
    """At each version, play cases over TCP and without a wire, and compare what they see.

    Args:
        profile: Kafka to play as.
        served: Server to play on.
        every_case: Whether to play cases all of whose exchanges are of kinds already compared.
    """
    compared: set[Exchange] = set()
    playing = cases_for(CASES, profile)
    for version in versions_to_play(profile):
        for case in list(playing):
            core = WatchedCore()
            inside = play_case(case, core, profile, at_version=version)
            if max((exchange.version for exchange in core.exchanges), default=0) < version:
                playing.remove(case)  # As at the version before, and at every later one.
                continue
            if inside.verdict is Verdict.SKIPPED or (core.exchanges <= compared and not every_case):
                continue
            over_tcp = play_case(case, served, profile, at_version=version)
            if over_tcp.verdict is Verdict.SKIPPED:
                continue
            compared |= core.exchanges
            assert (case.case_id, version, over_tcp.verdict, seen(over_tcp)) == (
                case.case_id,
                version,
                inside.verdict,
                seen(inside),
            )
    oldest, newest = versions_of(profile_named(profile))[ApiKey.JOIN_GROUP]
    joined = {exchange.version for exchange in compared if exchange.api == "JoinGroup"}
    assert joined == set(range(oldest, newest + 1))


@pytest.mark.parametrize(
    "profile", ["4.4", pytest.param("3.9", marks=pytest.mark.nightly), "0.10.2"]
)
def test_every_exchange_at_every_version_is_over_tcp_as_inside(
    profile: str, served: ServedTarget
) -> None:
    """Requests and answers of each kind, at each version, say over TCP what the core says.

    A kind is an API, a version, the fields that say something, and the errors.
    """
    assert_same_over_tcp(profile, served, every_case=False)


@pytest.mark.nightly
@pytest.mark.parametrize("profile", FAMILIES)
def test_every_case_at_every_version_is_over_tcp_as_inside(
    profile: str, served: ServedTarget
) -> None:
    """Whole cases with every request at one version see over TCP what they see of the core."""
    assert_same_over_tcp(profile, served, every_case=True)
