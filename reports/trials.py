"""The runs of a sweep: scenarios under choices, and the simulation of each.

A trial is simulated inside a Spark task, so this is the one module here that runs scenarios.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim import __version__
from coordinator_sim.assignors.registry import OWN_ASSIGNORS
from coordinator_sim.errors import ConfigError, CoordinatorSimError
from coordinator_sim.runs.run_directory import RunDirectoryWriter
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    ConnectGroupSpec,
    ConsumerGroupSpec,
    GroupSpec,
    Scenario,
    with_assignor,
)
from coordinator_sim.sim.scenario.happenings import (
    RemoveConnector,
    ResponseHappening,
    RestartMember,
    StartMember,
)
from coordinator_sim.sim.scenario.settings import CONNECT_PROTOCOL, STRATEGY
from coordinator_sim.sim.scenario.variants import with_counted_work, with_membership, with_variety
from coordinator_sim.sim.scenario.variety import Variety, check_variety
from coordinator_sim.trace.events import RunInfo, Source
from coordinator_sim_scenarios.catalog import all_scenarios, scenario_named

PROTOCOLS: Final = ("eager", "sessioned")
"""Connect's old protocol, and the newest incremental cooperative one."""
ASSIGNORS: Final = ("range", "sticky", "cooperative-sticky", *OWN_ASSIGNORS)
MEMBERSHIPS: Final = ("dynamic", "static")


class Trial(Struct, frozen=True, kw_only=True):
    """One run of a sweep.

    Args:
        scenario: Name in the catalogue.
        choice: The assignor, or the value of `connect.protocol`.
        membership: `dynamic` or `static`; empty for workers, which are always dynamic.
        seed: Seed of all random choices: it draws the world, the same one under every choice.
        variety: Distributions of the world, unless the scenario has a variety of its own.
        processing_ms: Typical processing time to compare; None where it is drawn.
    """

    scenario: str
    choice: str
    membership: str = ""
    seed: int = 0
    variety: Variety = Variety()
    processing_ms: int | None = None

    @property
    def label(self) -> str:
        """Name of the trial as a directory."""
        pace = "" if self.processing_ms is None else f"{self.processing_ms}ms"
        parts = (self.scenario, self.choice, self.membership, pace, str(self.seed))
        return "-".join(part for part in parts if part)

    @property
    def trace_id(self) -> str:
        """Id of the run in 32 hex digits."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:32]

    def world(self) -> Scenario:
        """Return the scenario under the trial's choices, drawn from a variety, its work counted."""
        found = with_assignor(scenario_named(self.scenario), self.choice)
        if self.membership:
            found = with_membership(found, static=self.membership == "static")
        if found.variety is None:
            found = with_variety(found, self._drawn_from())
        return with_counted_work(found)

    def _drawn_from(self) -> Variety:
        if self.processing_ms is None:
            return self.variety
        times_ms = (self.processing_ms, self.processing_ms)
        return msgspec.structs.replace(self.variety, processing_ms=times_ms)


def trials(
    names: Sequence[str],
    seeds: int,
    *,
    variety: Variety | None = None,
    processing_times: Sequence[int] = (),
) -> list[Trial]:
    """Return every scenario under every choice, in so many drawn worlds.

    Args:
        names: Scenarios of the catalogue; empty takes all that can be compared.
        seeds: Seeds 0 to `seeds - 1`.
        variety: Distributions of the worlds; None takes the default.
        processing_times: Typical processing times in milliseconds. Where some are given, dynamic
            consumers are run under every assignor with each of them, and nothing else is run.

    Raises:
        ScenarioError: a name is unknown.
        ConfigError: a scenario cannot be compared, or there is no seed.
    """
    if seeds < 1:
        raise ConfigError(f"seeds={seeds}: must be at least 1")
    named = [scenario_named(name) for name in names]
    for scenario in named:
        refusal = _refusal(scenario)
        if refusal is not None:
            raise ConfigError(f"scenario {scenario.name!r} cannot be compared: {refusal}")
    chosen = named or [found for found in all_scenarios().values() if _refusal(found) is None]
    drawn_from = variety or Variety()
    grid = [
        msgspec.structs.replace(trial, seed=seed, variety=drawn_from)
        for scenario in chosen
        for trial in _choices(scenario)
        for seed in range(seeds)
    ]
    if not processing_times:
        return grid
    timed = [trial for trial in grid if trial.membership == "dynamic"]
    if not timed:
        raise ConfigError("processing times are of consumers: name a scenario that has some")
    for time_ms in processing_times:
        check_variety(msgspec.structs.replace(drawn_from, processing_ms=(time_ms, time_ms)))
    return [
        msgspec.structs.replace(trial, processing_ms=time_ms)
        for time_ms in processing_times
        for trial in timed
    ]


def left_out() -> dict[str, str]:
    """Return the scenarios of the catalogue that a sweep leaves out, with the reason, by name."""
    refusals = {name: _refusal(found) for name, found in all_scenarios().items()}
    return {name: reason for name, reason in refusals.items() if reason is not None}


def _refusal(scenario: Scenario) -> str | None:
    """Return why the scenario cannot be run under every choice; None when it can be.

    Its story must not depend on the protocol used or on exact times; its consumers must commit, and
    all its clients must support every choice, which librdkafka and franz-go do not.
    """
    for happening in scenario.happenings:
        if isinstance(happening, ResponseHappening):
            return "its story hangs on single responses, which a drawn world does not meet"
        if isinstance(happening, RemoveConnector):
            return "it removes a connector, whose tasks are unowned for good"
        if isinstance(happening, StartMember | RestartMember) and (
            {STRATEGY, CONNECT_PROTOCOL} & happening.settings.keys()
        ):
            return "it changes assignors or protocols itself"
    if any(map(_never_commits, scenario.groups)):
        return "its consumers never commit, so every handover repeats everything"
    try:
        for trial in _choices(scenario):
            trial.world()
    except CoordinatorSimError as error:
        return str(error)
    return None


def _never_commits(group: GroupSpec) -> bool:
    return isinstance(group, ConsumerGroupSpec) and any(
        {**group.settings, **member.settings}.get("enable.auto.commit") == "false"
        and member.commits.when == "auto"
        for member in group.members
    )


def _choices(scenario: Scenario) -> Iterable[Trial]:
    kinds = {type(group) for group in scenario.groups}
    if ConnectGroupSpec in kinds:
        for protocol in PROTOCOLS:
            yield Trial(scenario=scenario.name, choice=protocol)
    if ConsumerGroupSpec in kinds:
        for assignor in ASSIGNORS:
            for membership in MEMBERSHIPS:
                yield Trial(scenario=scenario.name, choice=assignor, membership=membership)


def simulate_trial(trial: Trial, out: str) -> str:
    """Run one trial; return its run directory below `out`."""
    scenario = trial.world()
    directory = Path(out) / trial.label
    info = RunInfo(
        trace_id=trial.trace_id,
        source=Source.SIM,
        cluster_id="sim",
        version=__version__,
        profile=scenario.profile,
        seed=trial.seed,
        scenario=trial.scenario,
        assignor=f"{trial.choice} {trial.membership}".strip(),
        options={"varied": "true", "work": "true"},
    )
    with RunDirectoryWriter(directory, info) as writer:
        run_scenario(scenario, seed=trial.seed, recorder=writer)
    return str(directory)
