"""Reading what several commands are given: settings, scenarios and the form of a trace."""

import re
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from coordinator_sim.errors import ConfigError, ScenarioError, check_new

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from coordinator_sim.sim.scenario.scenario import Scenario
    from coordinator_sim.sim.scenario.variety import Variety


ProcessingOption = Annotated[
    str,
    typer.Option(
        help="Shape of the time from one poll to the next: steady, heavy-tailed or batch.",
        metavar="SHAPE",
    ),
]
ProcessingTimeOption = Annotated[
    str,
    typer.Option(
        help="Typical times from one poll to the next, one drawn for each member.",
        metavar="LOW..HIGH",
    ),
]
SeedsOption = Annotated[
    int, typer.Option(min=1, help="Worlds drawn for each choice, with consecutive seeds.")
]

MasterOption = Annotated[
    str | None,
    typer.Option(
        help="Spark master URL; without it traces of up to two million events need no Spark."
    ),
]
DownOption = Annotated[
    str,
    typer.Option(help="Time without a process at each restart; 8s by default.", metavar="LENGTH"),
]

ObjectiveOption = Annotated[
    int | None,
    typer.Option(
        "--objective-lag-ms",
        metavar="MS",
        help="Trace lag in time; tell for how long partitions lagged by more than this.",
    ),
]


_LIKE_A_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def local_only(given: Any) -> Any:  # noqa: ANN401 - one path, a list of them, or None
    """Return the paths that an option of `typer` was given.

    Raises:
        ConfigError: One is a URI, which would be taken for a folder of that name.
    """
    for each in given if isinstance(given, list) else [given]:
        # Arrow takes a relative path that begins like a URI for one.
        if _LIKE_A_URI.match(str(each)):
            raise ConfigError(
                f"{each} is a URI, and this is to be a path of this machine: mount it, or copy the "
                "files here and name the copy (scenario files, report, log dump and --out of sweep "
                "and rollout may be URIs, and with --spark what ingest and log offsets take)"
            )
    return given


@contextmanager
def run_folder(out: Path | None, usual: Path) -> "Iterator[Path]":
    """Where a command writes a trace: `out` if given, else the next number below `usual`.

    A line on stderr says so where `out` holds a trace, which is replaced.
    """
    from coordinator_sim.runs.run_directory import holds_trace, next_run

    if out is None:
        with next_run(usual) as run:
            yield run
        return
    if holds_trace(out):
        typer.echo(f"{out}: the trace that was there is replaced", err=True)
    yield out


class DateOrder(StrEnum):
    """The orders of day, month and year in dates such as 03/04/2024."""

    DAY_FIRST = "dmy"
    MONTH_FIRST = "mdy"


class TraceFormat(StrEnum):
    """The forms a run directory's events may have."""

    PARQUET = "parquet"
    JSONL = "jsonl"


def parse_settings(pairs: list[str]) -> dict[str, str]:
    """`key=value` pairs as a dict.

    Raises:
        ConfigError: A pair has no equals sign, or its key is empty or that of another pair.
    """
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {pair!r}: wants key=value, as session.timeout.ms=10000")
        check_new(key.strip(), settings, "--set")
        settings[key.strip()] = value.strip()
    return settings


def parse_variety(processing: str, processing_ms: str) -> "Variety":
    """The variety that the command line asks for.

    Args:
        processing: A shape of `SHAPES`; empty for the default.
        processing_ms: `LOW..HIGH`, or one number for both; empty for the default.

    Raises:
        ConfigError: The range is not two whole numbers.
        ScenarioError: The shape is unknown, or a time is outside its bounds.
    """
    from coordinator_sim.kafka.java_numbers import java_int
    from coordinator_sim.sim.scenario.variety import Variety, check_variety

    fields: dict[str, Any] = {"processing": processing} if processing else {}
    if processing_ms:
        low, dots, high = processing_ms.partition("..")
        times = [low, high if dots else low]
        numbers = [java_int(time.strip(), bits=64) for time in times]
        if None in numbers:
            raise ConfigError(
                f"--processing-ms {processing_ms!r}: wants LOW..HIGH or one number, as 100..1500"
            )
        fields["processing_ms"] = tuple(numbers)
    variety = Variety(**fields)
    check_variety(variety)
    return variety


def find_scenario(name_or_file: str) -> "Scenario":
    """The scenario of that name, of the catalogue or a task file of it, or the one in a JSON file.

    The file may be behind a URI.

    Raises:
        ScenarioError: No such name (close ones are listed), or the file holds no scenario.
        ConfigError: A URI's scheme is not known, or there is no such file behind it.
        OSError: The file cannot be read.
    """
    from coordinator_sim.sim.scenario.files import load_scenario
    from coordinator_sim_scenarios.catalog import scenario_named
    from coordinator_sim_scenarios.task_files import task_scenarios

    path = Path(name_or_file)
    if path.suffix == ".json" and ":/" in name_or_file:
        from coordinator_sim.cli.uris import located, session_for_uris

        with session_for_uris([name_or_file]) as spark:
            return load_scenario(located(name_or_file, spark))
    if path.suffix == ".json":
        return load_scenario(path)
    if path.suffix == ".py":
        local_only(name_or_file)
        raise ScenarioError(f"{path}: a story can only be run: coordinator-sim run {path}")
    if path.is_file():
        raise ScenarioError(f"{path}: a scenario's file ends in .json; rename it")
    return task_scenarios().get(name_or_file) or scenario_named(name_or_file)


def find_task_file(name_or_file: str, spark: "SparkSession | None" = None) -> Path:
    """The task file of that name in the catalogue, or the path or URI as it stands.

    Raises:
        ScenarioError: No such name, and no file of JSON either.
    """
    from coordinator_sim.cli.uris import located
    from coordinator_sim_scenarios.task_files import FOLDER, task_file

    if name_or_file.endswith(".json"):
        return located(name_or_file, spark)
    found = task_file(name_or_file)
    if found is None:
        known = ", ".join(sorted(each.stem for each in FOLDER.glob("*.json")))
        raise ScenarioError(
            f"{name_or_file!r} is no scenario that is written as tasks: give one of {known}, or a "
            ".json file"
        )
    return found
