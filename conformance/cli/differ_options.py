"""Options of `differ`."""

from pathlib import Path
from typing import Annotated

import typer

ReferenceName = Annotated[
    str,
    typer.Option(
        help="The Kafka to compare with, or a running endpoint.", metavar="NAME|HOST:PORT"
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        help="For an endpoint: a client's properties file, for TLS and SASL.",
        metavar="FILE",
        exists=True,
        dir_okay=False,
    ),
]
DeclaredFile = Annotated[
    Path | None,
    typer.Option(
        help="For an endpoint: a TOML file with what cannot be asked.",
        metavar="FILE",
        exists=True,
        dir_okay=False,
    ),
]
Explained = Annotated[
    list[str] | None,
    typer.Option(
        help="Understood differences: kfake, librdkafka-mock, or a TOML file.",
        metavar="NAME|FILE",
    ),
]
ProfileName = Annotated[
    str | None,
    typer.Option(help="Our profile; the reference's unless given.", metavar="PROFILE"),
]
Steps = Annotated[
    int,
    typer.Option(
        "--steps", "--operations", help="Commands in all; on an endpoint, requests.", min=1
    ),
]
Seed = Annotated[int, typer.Option(help="Of the programs.")]
ProgramSeed = Annotated[
    int | None, typer.Option(help="Run the one program of this seed.", metavar="SEED")
]
ProgramSteps = Annotated[
    int | None,
    typer.Option(help="Commands of one world: 400, on an endpoint 40 requests.", min=3),
]
Without = Annotated[str, typer.Option(help="Requests and events to leave out.", metavar="NAME,...")]
World = Annotated[
    str,
    typer.Option(
        help="What the groups mostly are.",
        metavar="classic|consumer|migration|share|share-state|streams",
    ),
]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", help="Go on with the next program; list the kinds.")
]
Shrink = Annotated[bool, typer.Option(help="Make the failing program small.")]
ScriptFile = Annotated[Path | None, typer.Option(help="Run this script instead.", metavar="FILE")]
RecordFile = Annotated[
    Path | None,
    typer.Option(help="Write the script's answers of the reference here.", metavar="FILE"),
]
OutFolder = Annotated[Path, typer.Option(help="Where failing scripts go.")]
LinesCommand = Annotated[
    str | None,
    typer.Option(help="Compare this program instead of the simulator.", metavar="COMMAND"),
]
