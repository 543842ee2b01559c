"""Simulating a scenario, or a story in Python, into a run directory: for `run` and `demo`."""

import hashlib
import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import isgeneratorfunction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from coordinator_sim import __version__
from coordinator_sim.cli.metrics import write_metrics
from coordinator_sim.errors import CoordinatorSimError, ScenarioError, described, naming
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder, Recorder

if TYPE_CHECKING:
    from simpy.events import ProcessGenerator

    from coordinator_sim.sim.runner import RunResult
    from coordinator_sim.sim.scenario.scenario import Scenario
    from coordinator_sim.sim.stories import Story, StoryWorld
    from coordinator_sim.trace.exchange import Exchange


class Simulation(Struct, frozen=True, kw_only=True):
    """What to simulate and what to call it.

    Args:
        scenario: With all settings applied.
        assignor: What the trace is labelled with in comparisons.
        options: What the user changed, for `run.json`.
        shuffle_ties: Draw the order of simultaneous happenings instead of first in, first out.
        elide: Skip idle time.
        story: What a Python file tells over the scenario.
    """

    scenario: "Scenario"
    seed: int
    assignor: str | None
    options: dict[str, str]
    shuffle_ties: bool = False
    elide: bool = False
    story: "Story | None" = None

    def trace_id(self) -> str:
        """32 hex digits of SHA-256 over scenario, seed, profile and options."""
        parts = (self.scenario, self.seed, self.scenario.profile, sorted(self.options.items()))
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]

    def run_info(self) -> RunInfo:
        """What the whole run shares."""
        return RunInfo(
            trace_id=self.trace_id(),
            source=Source.SIM,
            cluster_id="sim",
            version=__version__,
            profile=self.scenario.profile,
            seed=self.seed,
            scenario=self.scenario.name,
            assignor=self.assignor,
            options=self.options,
        )


def with_switches(
    simulation: Simulation, *, work: bool, shuffle_ties: bool, elide: bool
) -> Simulation:
    """Return the simulation with switches that are off by default, named in its options.

    Args:
        simulation: The simulation without them.
        work: Whether the trace tells which records are processed.
        shuffle_ties: Whether the order of simultaneous happenings is drawn.
        elide: Whether idle time is skipped where that is exact.
    """
    asked = {"work": work, "shuffle-ties": shuffle_ties, "elide": elide}
    options = {name: "true" for name, is_on in asked.items() if is_on}
    if not options:
        return simulation
    scenario = simulation.scenario
    return msgspec.structs.replace(
        simulation,
        scenario=msgspec.structs.replace(scenario, traces_work=True) if work else scenario,
        options={**simulation.options, **options},
        shuffle_ties=shuffle_ties,
        elide=elide,
    )


def with_objective(simulation: Simulation, lag_ms: int | None) -> Simulation:
    """Return the simulation that records for how long a lag was exceeded, named in its options.

    Without a lag it is the same.

    Raises:
        ScenarioError: the lag is not positive.
    """
    if lag_ms is None:
        return simulation
    scenario = msgspec.structs.replace(
        simulation.scenario, objective_lag_ms=lag_ms, traces_work=True
    )
    options = {**simulation.options, "objective-lag-ms": str(lag_ms)}
    return msgspec.structs.replace(simulation, scenario=scenario, options=options)


def load_story(path: Path) -> "tuple[Scenario, Story, str]":
    """Run a Python file; return its `SCENARIO`, its `story`, and its name with a checksum.

    Raises:
        ScenarioError: the file fails, or lacks one of the two; a failure of the story is one too.
    """
    from coordinator_sim.sim.scenario.scenario import Scenario

    if not path.is_file():
        raise ScenarioError(f"{path}: no such file")
    try:
        found = runpy.run_path(str(path), run_name=path.stem)
    except CoordinatorSimError:
        raise
    except Exception as error:
        raise ScenarioError(f"{path}: {described(error)}") from error
    scenario, story = found.get("SCENARIO"), found.get("story")
    if not isinstance(scenario, Scenario):
        raise ScenarioError(f"{path}: has no SCENARIO, the world that its story is told over")
    if not isgeneratorfunction(story):
        raise ScenarioError(f"{path}: has no story(world), a generator function")
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    return scenario, _checked(path, story), f"{path.name} {checksum}"


def _checked(path: Path, story: "Story") -> "Story":
    """The story; its own mistakes become one line with their place in the file."""

    def checked(world: "StoryWorld") -> "ProcessGenerator":
        try:
            return (yield from story(world))
        except CoordinatorSimError:
            raise
        except Exception as error:
            raise ScenarioError(f"{path}: {described(error)}") from error

    return checked


def assignor_label(scenario: "Scenario") -> str | None:
    """The assignors or Connect protocols of a scenario's groups, as one label; None without any."""
    from coordinator_sim.sim.scenario.world import ConnectGroupSpec, ConsumerGroupSpec

    labels = [
        "+".join(group.assignors)
        if isinstance(group, ConsumerGroupSpec)
        else f"connect-{group.connect_protocol}"
        if isinstance(group, ConnectGroupSpec)
        else "share"
        for group in scenario.groups
    ]
    return ", ".join(dict.fromkeys(labels)) or None


def simulate(
    simulation: Simulation,
    out: Path,
    *,
    trace_format: Literal["parquet", "jsonl"] = "parquet",
    on_progress: Callable[[int], None] | None = None,
    log_dir: Path | None = None,
    request_log: Path | None = None,
    on_result: "Callable[[RunResult], None] | None" = None,
) -> list[TraceEvent]:
    """Run the scenario, write its run directory, and return the events.

    Args:
        simulation: The scenario to run.
        out: Run directory to write; an older trace there is replaced.
        trace_format: Form of the events on disk.
        on_progress: Called now and then with the virtual time reached, in microseconds.
        log_dir: Directory for the offsets log as segments, a folder per partition.
        request_log: File for the brokers' request log; replaced if it exists.
        on_result: Called with the result of the run.
    """
    from coordinator_sim.runs.run_directory import RunDirectoryWriter
    from coordinator_sim.sim.runner import run_scenario

    with (
        RunDirectoryWriter(out, simulation.run_info(), format=trace_format) as writer,
        _request_log(request_log) as on_exchange,
    ):
        recorder = _KeepingRecorder(writer)
        result = run_scenario(
            simulation.scenario,
            seed=simulation.seed,
            recorder=recorder,
            progress=on_progress,
            shuffle_ties=simulation.shuffle_ties,
            on_exchange=on_exchange,
            elide=simulation.elide,
            story=simulation.story,
        )
    if on_result is not None:
        on_result(result)
    write_metrics(out, result.metrics)
    if log_dir is not None:
        from coordinator_sim.disk.offsets_log import write_log
        from coordinator_sim.kafka.profiles import profile_named
        from coordinator_sim.log.format.log_batches import form_of

        form = form_of(profile_named(simulation.scenario.profile))
        write_log(log_dir, result.offsets_log, form)
    return recorder.events


@contextmanager
def _request_log(path: Path | None) -> "Iterator[Callable[[Exchange], None] | None]":
    """What writes each exchange to a request log; None without one."""
    if path is None:
        yield None
        return
    from coordinator_sim.logtext.writing.request_log import request_line

    with naming(path), path.open("w", encoding="utf-8") as file:
        yield lambda exchange: print(request_line(exchange), file=file)


class _KeepingRecorder(MemoryRecorder):
    """Keeps every event and writes it: the disk is used while the run goes on."""

    def __init__(self, writer: Recorder) -> None:
        super().__init__()
        self._writer = writer

    def record(self, event: TraceEvent) -> None:
        """Take the next event of the run."""
        super().record(event)
        self._writer.record(self.events[-1])
