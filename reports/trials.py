"""The runs of a sweep: scenarios under choices, and the simulation of each.

A trial is simulated inside a Spark task, so this is the one module here that runs scenarios.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim import __version__
from coordinator_sim.assignors.foreign.contract import OwnAssignor
from coordinator_sim.assignors.registry import own_assignors, register_own
from coordinator_sim.errors import ConfigError, CoordinatorSimError
from coordinator_sim.runs.run_directory import RunDirectoryWriter, read_run
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    ConnectGroupSpec,
    ConsumerGroupSpec,
    GroupSpec,
    Scenario,
    with_assignor,
    with_settings,
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
from coordinator_sim_reports.objective import lag_costs
from coordinator_sim_scenarios.catalog import all_scenarios, scenario_named

PROTOCOLS: Final = ("eager", "sessioned")
"""Connect's old protocol, and the newest incremental cooperative one."""
COMPARED: Final = ("range", "sticky", "cooperative-sticky")
"""Kafka's assignors that a sweep compares; `roundrobin` only where it is asked for."""
LAG_NAME: Final = "lag.json"
"""File beside a trace: what its lag objective costs."""
MEMBERSHIPS: Final = ("dynamic", "static")


class Trial(Struct, frozen=True, kw_only=True):
    """One run of a sweep.

    Args:
        scenario: Name in the catalogue, or of an own scenario of the sweep.
        choice: The assignor, or the value of `connect.protocol`.
        membership: `dynamic` or `static`; empty for workers, which are always dynamic.
        seed: Seed of all random choices: it draws the world, the same one under every choice.
        variety: Distributions of the world, unless the scenario has a variety of its own.
        processing_ms: Typical processing time to compare; None where it is drawn.
        settings: Settings by Kafka's names, over the scenario's.
        written: Hash of an own scenario; empty for one of the catalogue.
        objective_lag_ms: Age of an unprocessed record that is borne; None records no lag.
    """

    scenario: str
    choice: str
    membership: str = ""
    seed: int = 0
    variety: Variety = Variety()
    processing_ms: int | None = None
    settings: dict[str, str] = {}
    written: str = ""
    objective_lag_ms: int | None = None

    @property
    def label(self) -> str:
        """Name of the trial as a directory."""
        pace = "" if self.processing_ms is None else f"{self.processing_ms}ms"
        changed = "" if not self.settings else _hash_of(sorted(self.settings.items()))[:10]
        parts = (self.scenario, self.choice, self.membership, pace, changed, str(self.seed))
        return "-".join(part for part in parts if part)

    @property
    def settings_text(self) -> str:
        """The settings as `key=value`, separated by spaces."""
        return " ".join(f"{key}={value}" for key, value in sorted(self.settings.items()))

    @property
    def trace_id(self) -> str:
        """Id of the run in 32 hex digits."""
        return _hash_of(self)[:32]

    def world(self, written: Mapping[str, Scenario] | None = None) -> Scenario:
        """Return the scenario under the trial's choices, drawn from a variety, its work counted.

        Args:
            written: Own scenarios by name, before those of the catalogue.
        """
        found = (written or {}).get(self.scenario) or scenario_named(self.scenario)
        found = with_settings(with_assignor(found, self.choice), self.settings)
        if self.membership:
            found = with_membership(found, static=self.membership == "static")
        if found.variety is None:
            found = with_variety(found, self._drawn_from())
        elif self.processing_ms is not None:
            times_ms = (self.processing_ms, self.processing_ms)
            changed = msgspec.structs.replace(found.variety, processing_ms=times_ms)
            found = msgspec.structs.replace(found, variety=changed)
        if self.objective_lag_ms is not None:
            found = msgspec.structs.replace(found, objective_lag_ms=self.objective_lag_ms)
        return with_counted_work(found)

    def _drawn_from(self) -> Variety:
        if self.processing_ms is None:
            return self.variety
        times_ms = (self.processing_ms, self.processing_ms)
        return msgspec.structs.replace(self.variety, processing_ms=times_ms)


class Asked(Struct, frozen=True, kw_only=True):
    """Runs that a sweep is asked for: every combination of these.

    Args:
        names: Scenarios of the catalogue or among `written`; empty takes all of the catalogue
            that can be compared.
        seeds: Seeds, each a drawn world.
        variety: Distributions of the worlds, for scenarios without a variety of their own.
        processing_times: Typical processing times in milliseconds. Where some are given, dynamic
            consumers are run under every assignor with each of them, and nothing else is run.
        written: Own scenarios by name.
        assignors: Assignors of consumer groups; empty takes `compared_assignors`.
        memberships: Kinds of membership of consumers.
        protocols: Values of `connect.protocol` of Connect clusters.
        settings: Settings to compare, each over those of the scenario.
        own: Assignors from outside that the runs need.
        objective_lag_ms: See `Trial`; with one, a scenario without records is refused.
    """

    names: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    variety: Variety = Variety()
    processing_times: tuple[int, ...] = ()
    written: dict[str, Scenario] = {}
    assignors: tuple[str, ...] = ()
    memberships: tuple[str, ...] = MEMBERSHIPS
    protocols: tuple[str, ...] = PROTOCOLS
    settings: tuple[dict[str, str], ...] = ({},)
    own: tuple[OwnAssignor, ...] = ()
    objective_lag_ms: int | None = None

    def scenario(self, name: str) -> Scenario:
        """Return an own scenario, or one of the catalogue.

        Raises:
            ScenarioError: the name is unknown.
        """
        return self.written.get(name) or scenario_named(name)


def compared_assignors() -> tuple[str, ...]:
    """Return the assignors that a sweep compares by default, the user's own included."""
    return (*COMPARED, *own_assignors())


def trials(asked: Asked) -> list[Trial]:
    """Return every scenario under every choice, in so many drawn worlds.

    Raises:
        ScenarioError: a name is unknown.
        ConfigError: a scenario cannot be compared, or there is no seed.
    """
    if not asked.seeds:
        raise ConfigError("a sweep without a seed has no world: name at least one")
    named = [asked.scenario(name) for name in asked.names]
    for scenario in named:
        refusal = _refusal(scenario, asked)
        if refusal is not None:
            raise ConfigError(f"scenario {scenario.name!r} cannot be compared: {refusal}")
    chosen = named or [
        found for found in all_scenarios().values() if _refusal(found, asked) is None
    ]
    if not chosen:
        raise ConfigError("no scenario of the catalogue can be compared so: name one to read why")
    written = {name: _hash_of(scenario) for name, scenario in asked.written.items()}
    grid = [
        msgspec.structs.replace(
            trial,
            seed=seed,
            variety=asked.variety,
            written=written.get(scenario.name, ""),
            objective_lag_ms=asked.objective_lag_ms,
        )
        for scenario in chosen
        for trial in _choices(scenario, asked)
        for seed in asked.seeds
    ]
    if not asked.processing_times:
        return grid
    timed = [trial for trial in grid if trial.membership == "dynamic"]
    if not timed:
        raise ConfigError("processing times are of consumers: name a scenario that has some")
    for time_ms in asked.processing_times:
        check_variety(msgspec.structs.replace(asked.variety, processing_ms=(time_ms, time_ms)))
    return [
        msgspec.structs.replace(trial, processing_ms=time_ms)
        for time_ms in asked.processing_times
        for trial in timed
    ]


def _hash_of(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()


def left_out(sweep: Asked) -> dict[str, str]:
    """Return the scenarios of the catalogue that a sweep leaves out, with the reason, by name."""
    refusals = {name: _refusal(found, sweep) for name, found in all_scenarios().items()}
    return {name: reason for name, reason in refusals.items() if reason is not None}


def _refusal(scenario: Scenario, asked: Asked) -> str | None:
    """Return why the scenario cannot be run under every choice; None when it can be.

    Its story must not depend on the protocol used or on exact times; its consumers must commit, and
    all its clients must support every choice, which librdkafka and franz-go do not.
    """
    if not {ConsumerGroupSpec, ConnectGroupSpec} & set(map(type, scenario.groups)):
        return "its groups have neither assignors nor protocols to choose from"
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
        for trial in _choices(scenario, asked):
            judged = msgspec.structs.replace(trial, objective_lag_ms=asked.objective_lag_ms)
            world = judged.world({scenario.name: scenario})
            if asked.objective_lag_ms and not any(t.load or t.records_per_s for t in world.topics):
                return "no topic of it has a load or records_per_s, so nothing can lag"
    except CoordinatorSimError as error:
        return str(error)
    return None


def _never_commits(group: GroupSpec) -> bool:
    return isinstance(group, ConsumerGroupSpec) and any(
        {**group.settings, **member.settings}.get("enable.auto.commit") == "false"
        and member.commits.when == "auto"
        for member in group.members
    )


def _choices(scenario: Scenario, asked: Asked) -> Iterable[Trial]:
    kinds = {type(group) for group in scenario.groups}
    for settings in asked.settings:
        if ConnectGroupSpec in kinds:
            for protocol in asked.protocols:
                yield Trial(scenario=scenario.name, choice=protocol, settings=settings)
        if ConsumerGroupSpec in kinds:
            for assignor in asked.assignors or compared_assignors():
                for membership in asked.memberships:
                    yield Trial(
                        scenario=scenario.name,
                        choice=assignor,
                        membership=membership,
                        settings=settings,
                    )


class Finished(Struct, frozen=True, kw_only=True):
    """What became of a trial.

    Args:
        path: Its run directory; empty where it failed.
        failure: One line that says why it failed; empty where it did not.
        is_kept: Whether an earlier sweep had finished it.
    """

    path: str = ""
    failure: str = ""
    is_kept: bool = False


def simulate_trial(trial: Trial, out: str, asked: Asked) -> Finished:
    """Run one trial into a directory below `out`, unless its finished trace is there.

    Args:
        trial: The run.
        out: Directory of all traces of the sweep.
        asked: What the sweep was asked for: own scenarios and assignors.
    """
    directory = Path(out) / trial.label
    if is_finished(directory, trial):
        return Finished(path=str(directory), is_kept=True)
    try:
        for own in asked.own:
            register_own(own)
        scenario = trial.world(asked.written)
        lag_ms = trial.objective_lag_ms
        objective = {} if lag_ms is None else {"objective-lag-ms": str(lag_ms)}
        info = RunInfo(
            trace_id=trial.trace_id,
            source=Source.SIM,
            cluster_id="sim",
            version=__version__,
            profile=scenario.profile,
            seed=trial.seed,
            scenario=trial.scenario,
            assignor=f"{trial.choice} {trial.membership}".strip(),
            options={"varied": "true", "work": "true", **objective, **trial.settings},
        )
        with RunDirectoryWriter(directory, info) as writer:
            run_scenario(scenario, seed=trial.seed, recorder=writer)
        if lag_ms is not None:
            costs = lag_costs(list(read_run(directory).events()), scenario)
            (directory / LAG_NAME).write_bytes(msgspec.json.encode(costs))
    except CoordinatorSimError as error:
        return Finished(failure=f"{trial.label}: {error}")
    return Finished(path=str(directory))


def is_finished(directory: Path, trial: Trial) -> bool:
    """Whether a directory holds the whole trace of this trial, by this version."""
    try:
        info = read_run(directory).info
    except CoordinatorSimError:
        return False
    is_told = trial.objective_lag_ms is None or (directory / LAG_NAME).is_file()
    return is_told and info.trace_id == trial.trace_id and info.version == __version__
