"""Cases on a broker with Kafka's defaults and other names, as the suite meets one of somebody's.

In virtual time: what a case waits for here, it waits for in wall time there.
"""

from typing import Final

import pytest
from msgspec.structs import replace

from coordinator_sim.broker.configs.setting_types import settings_of
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.cli.settings import brokers_for
from coordinator_sim_conformance.registry import all_cases
from coordinator_sim_conformance.requirements import FAMILIES, RELEASES
from coordinator_sim_conformance.running import Verdict, play_case
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.asked import (
    INTERVAL,
    LIMITS,
    MEMBERS,
    MIGRATION,
    SHARE_INTERVAL,
    STREAMS_DELAY,
    STREAMS_INTERVAL,
    Pace,
    misfit,
)
from coordinator_sim_conformance.targets.foreign import asked_by, commands_of, waits_s
from coordinator_sim_conformance.targets.names import Names
from coordinator_sim_conformance.targets.simulator import SimulatorTarget
from coordinator_sim_conformance.targets.target import (
    Call,
    Capability,
    GroupView,
    Json,
    Outcome,
    Unsupported,
    World,
)
from coordinator_sim_conformance.targets.wall_time import LONGEST_WAIT_S

NEWEST: Final = [profile_named(family).name for family in FAMILIES.values()]
NEW_AREAS: Final = ("CONSUMER", "SHARE", "STREAMS")
NEW_CASES: Final = [
    pytest.param(case, id=case.case_id)
    for case in all_cases()
    if case.requirement.area in NEW_AREAS and "4.4" in case.requirement.profiles
]
PACED: Final = (INTERVAL, SHARE_INTERVAL, STREAMS_INTERVAL, STREAMS_DELAY)
DEFAULTS: Final = {name: setting.default for name, setting in settings_of("4.4", "broker").items()}
OUTSIDE: Final = {Capability.TOPICS, Capability.CONSUMER_GROUPS, Capability.SHARE_GROUPS} | {
    Capability.STREAMS_GROUPS
}
"""What an endpoint offers."""
EXCUSED: Final = {
    ("CG-069", INTERVAL): "in wall time its heartbeats could be later than one of 1000 ms",
    ("CG-125", MEMBERS): "a group that is not full takes the member too",
    ("CG-149", MIGRATION): "the default allows downgrades, too",
}
"""Settings without which a case passes, and why it asks for them all the same."""


class PacedSimulator(SimulatorTarget):
    """The simulator with Kafka's default settings, but for those that a case asks for."""

    without: str = ""
    """A setting that has its default even where it is asked for."""

    def start(self, world: World) -> None:
        """Create a new broker."""
        asked = world.asked - {self.without}
        found = {
            name: world.settings[name] if name in asked else str(DEFAULTS[name])
            for name in world.settings
            if name in asked or name in PACED or name == self.without
        }
        self.pace = Pace(world.settings, found)
        super().start(replace(world, settings=world.settings | found))

    def call(self, call: Call) -> Outcome:
        """Send a request when it is due."""
        owed_ms = self.pace.owed_ms(call, self._lines.harness.now_ms)
        earlier = self.advance(owed_ms) if owed_ms else Outcome()
        came = super().call(call)
        return Outcome(earlier.answers + came.answers, earlier.records + came.records)


class RenamingSimulator(SimulatorTarget):
    """The simulator with other names of groups and topics than a script's."""

    def start(self, world: World) -> None:
        """Create a new broker with renamed topics."""
        self.names = Names("somebody-s.")
        topics = {self.renamed(topic): count for topic, count in (world.topics or {}).items()}
        super().start(replace(world, topics=topics))

    def renamed(self, name: str) -> str:
        """Return the broker's name of a script's."""
        return name and self.names.prefix + name

    def topic_named(self, name: str) -> str:
        """Return the broker's name of a topic; of one that it does not have, too."""
        return self.names.topic(name, self.renamed)

    def call(self, call: Call) -> Outcome:
        """Send a request with the broker's names."""
        sent = self.names.there(call.data, group=self.renamed, topic=self.renamed)
        return self.with_script_names(super().call(replace(call, data=sent)))

    def advance(self, ms: int, *, early: bool = False) -> Outcome:
        """Let virtual time pass."""
        return self.with_script_names(super().advance(ms, early=early))

    def with_script_names(self, came: Outcome) -> Outcome:
        """Return the answers with the names of the script."""
        return Outcome(
            tuple(replace(each, data=self.names.here(each.data, hosts={})) for each in came.answers)
        )

    def operate(self, operation: Json) -> Outcome:
        """Create or delete topics.

        Raises:
            Unsupported: any other operation.
        """
        if operation["op"] != "topics":
            raise Unsupported("an endpoint of somebody's takes no commands")
        made = [
            {**topic, "name": self.topic_named(topic["name"])} for topic in operation.get("set", ())
        ]
        gone = [self.topic_named(name) for name in operation.get("remove", ())]
        change = {"set": made} if made else {"remove": gone}
        return self.with_script_names(super().operate({"op": "topics", **change}))

    def topic_ids(self) -> dict[str, str]:
        """Return the ids of topics by the names of the script."""
        prefix = self.names.prefix
        return {name.removeprefix(prefix): each for name, each in super().topic_ids().items()}

    def view(self, group_id: str) -> GroupView | None:
        """Return the group of that name of the script's."""
        return super().view(self.renamed(group_id))

    def partition_of(self, group_id: str) -> int:
        """Fail: an endpoint does not show it.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(f"the partition of {group_id!r} is not shown")

    def offers(self, capability: Capability) -> bool:
        """Whether an endpoint could do it."""
        return capability in OUTSIDE and super().offers(capability)


@pytest.mark.parametrize("profile", NEWEST)
def test_a_case_passes_with_other_names_than_its_own(profile: str) -> None:
    """No expectation of any area holds a name that the suite changes on an endpoint."""
    target = RenamingSimulator()
    endings = [
        play_case(case, target, profile)
        for case in all_cases()
        if profile in case.requirement.profiles
    ]

    assert [
        (each.case_id, each.verdict, each.expectation, each.came)
        for each in endings
        if each.verdict not in {Verdict.PASSED, Verdict.SKIPPED}
    ] == []
    assert sum(each.verdict is Verdict.PASSED for each in endings) > len(endings) / 2


@pytest.mark.parametrize("case", NEW_CASES)
def test_a_case_with_default_settings_passes(case: Case) -> None:
    """It waits for target assignments, and asks for the settings that no wait replaces."""
    ending = play_case(case, PacedSimulator(), "4.4")

    assert ending.verdict is Verdict.PASSED, (ending.reason, ending.transcript)


def test_at_least_100_cases_of_new_protocols_ask_for_no_setting() -> None:
    """A broker with Kafka's defaults is graded on most of what there is."""
    asking = [
        case.values[0] for case in NEW_CASES if has_other_settings(asked_by(case.values[0], "4.4"))
    ]

    assert len(NEW_CASES) - len(asking) >= 100


def has_other_settings(asked: dict[str, str]) -> bool:
    """Whether a broker with Kafka's defaults lacks a setting that is asked for."""
    return any(str(DEFAULTS[name]) != value for name, value in asked.items())


@pytest.mark.parametrize(
    ("case", "setting"),
    [
        pytest.param(case.values[0], setting, id=f"{case.id}-{setting}")
        for case in NEW_CASES
        for setting, value in asked_by(case.values[0], "4.4").items()
        if value != str(DEFAULTS[setting]) and (case.id, setting) not in EXCUSED
    ],
)
def test_a_case_fails_without_a_setting_that_it_asks_for(case: Case, setting: str) -> None:
    """None is asked for that the case could do without."""
    target = PacedSimulator()
    target.without = setting

    assert play_case(case, target, "4.4").verdict is Verdict.FAILED


def test_every_excused_setting_is_asked_for() -> None:
    """The list holds no more than there is."""
    cases = {case.id: case.values[0] for case in NEW_CASES}
    assert all(setting in asked_by(cases[case_id], "4.4") for case_id, setting in EXCUSED)


@pytest.mark.parametrize("profile", RELEASES)
def test_printed_settings_unlock_every_case(profile: str) -> None:
    """Each case that a client can play has what it asks for on one of the brokers."""
    brokers = brokers_for(profile)
    left = [
        case.case_id
        for case in all_cases()
        if profile in case.requirement.profiles
        and not commands_of(case, profile)
        and waits_s(case, profile) <= LONGEST_WAIT_S
        and all(misfit(asked_by(case, profile), broker) is not None for broker in brokers)
    ]

    failing_assignor = {"CG-078", "CG-078.later"}
    assert set(left) <= failing_assignor
    assert len(brokers) <= 3
    assert LIMITS.isdisjoint(brokers[0])
