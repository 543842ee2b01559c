"""`matrix`: result files as one page, implementations by requirements."""

from pathlib import Path
from typing import Annotated

import typer

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.registry import any_cases
from coordinator_sim_conformance.verdicts.matrix import (
    COORDINATORS,
    SUBJECTS,
    columns_of,
    matrix_page,
    row_of,
)
from coordinator_sim_conformance.verdicts.results import read_result


def matrix(
    results: Annotated[
        list[Path],
        typer.Argument(help="Files of `conformance run --result`.", metavar="RESULT.json..."),
    ],
    output: Annotated[Path, typer.Option(help="Where the page goes.", metavar="FILE")] = Path(
        "matrix.html"
    ),
    about: Annotated[
        str, typer.Option(help=f"Whose requirements: {', '.join(SUBJECTS)}.", metavar="SUBJECT")
    ] = COORDINATORS,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Conformance",
) -> None:
    """Show result files as one HTML page: implementations by requirements, with the evidence.

    Files may come from other machines and other suites; a file with several profiles is several
    columns. A case that this suite knows is told of in its words.

    Example: conformance matrix serve.json theirs.json --output matrix.html
    """
    if about not in SUBJECTS:
        raise ConfigError(f"--about {about}: use one of {', '.join(SUBJECTS)}")
    columns = columns_of([(path.stem, read_result(path)) for path in results], about)
    page = matrix_page(columns, map(row_of, any_cases()), title)
    output.write_text(page, encoding="utf-8")
    cases = len({case_id for column in columns for case_id in column.endings})
    typer.echo(f"{output}: cases: {cases}, implementations: {len(columns)}")
