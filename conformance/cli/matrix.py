"""`matrix`: result files as one page, implementations by requirements."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator_sim.errors import ConfigError, CoordinatorSimError
from coordinator_sim_conformance.cli.outputs import Processes
from coordinator_sim_conformance.cli.run import played_on, say
from coordinator_sim_conformance.endpoints.named import NAMED
from coordinator_sim_conformance.registry import any_cases
from coordinator_sim_conformance.targets.choice import SIMULATOR, known_gaps_of, opened
from coordinator_sim_conformance.verdicts.baseline import read_baseline
from coordinator_sim_conformance.verdicts.matrix import (
    COORDINATORS,
    SUBJECTS,
    columns_of,
    matrix_page,
    row_of,
)
from coordinator_sim_conformance.verdicts.results import file_bytes, read_result

_ALL: Final = "all"
_SIMULATED: Final = ["2.8", "3.9", "4.4"]
"""Profiles that the simulator is played as: the newest of each coordinator, and one before."""


def matrix(
    results: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of `conformance run --result`.", metavar="[RESULT.json...]"),
    ] = None,
    output: Annotated[Path, typer.Option(help="Where the page goes.", metavar="FILE")] = Path(
        "matrix.html"
    ),
    about: Annotated[
        str, typer.Option(help=f"Whose requirements: {', '.join(SUBJECTS)}.", metavar="SUBJECT")
    ] = COORDINATORS,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Conformance",
    run: Annotated[
        list[str] | None,
        typer.Option(
            help="Play this target first, in all areas; may be given again; all for every one "
            f"that is started by name, and the {SIMULATOR}.",
            metavar="TARGET",
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            help="With --run: existing folder for the result files; those that are there are shown "
            "too.",
            metavar="FOLDER",
        ),
    ] = None,
    processes: Processes = None,
) -> None:
    """Show result files as one HTML page: implementations by requirements, with the evidence.

    Files may come from other machines and other suites; a file with several profiles is several
    columns. A case that this suite knows is told of in its words. A target that cannot be played
    leaves its file as it is, and the exit code is 2.

    Example: conformance matrix serve.json theirs.json --output matrix.html
    """
    if about not in SUBJECTS:
        raise ConfigError(f"--about {about}: use one of {', '.join(SUBJECTS)}")
    if bool(run) != (into is not None):
        raise ConfigError("--run and --into go together: name the targets, and the folder")
    problems = [] if into is None else _played_into(into, run or (), processes)
    files = [*(results or ()), *([] if into is None else sorted(into.glob("*.json*")))]
    if not files:
        raise ConfigError("no results: name files of `conformance run --result`, or use --run")
    columns = columns_of([(path.stem, read_result(path)) for path in files], about)
    page = matrix_page(columns, map(row_of, any_cases()), title)
    output.write_text(page, encoding="utf-8")
    cases = len({case_id for column in columns for case_id in column.endings})
    typer.echo(f"{output}: cases: {cases}, implementations: {len(columns)}")
    if problems:
        raise ConfigError(f"not played: {'; '.join(problems)}")


def _played_into(folder: Path, wanted: Iterable[str], processes: int | None) -> list[str]:
    """Play targets one after the other, and write their results; return what went wrong.

    Raises:
        ConfigError: the folder does not exist, or a target is unknown.
    """
    everything = [*NAMED, SIMULATOR]
    names = everything if _ALL in wanted else list(dict.fromkeys(wanted))
    for name in names:
        if name not in everything:
            raise ConfigError(f"--run {name}: use {_ALL}, or one of {', '.join(everything)}")
    if not folder.is_dir():
        raise ConfigError(f"--into {folder}: there is no such folder: create it first")
    problems = []
    for name in names:
        say(f"{name}:")
        path = known_gaps_of(name)
        gaps = {} if path is None else read_baseline(path, any_cases())
        profiles = _SIMULATED if name == SIMULATOR else None
        try:
            played = played_on(opened(name, say, processes), any_cases(), profiles, gaps)
        except CoordinatorSimError as problem:
            problems.append(f"{name}: {problem}")
            continue
        file = folder / f"{name.replace(':', '-')}.json.gz"
        file.write_bytes(file_bytes(played, file))
    return problems
