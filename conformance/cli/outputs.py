"""Options of `run`, and what it writes besides its table: a result file, JUnit, TAP, a baseline."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.verdicts.baseline import Gaps, baseline_text, is_open
from coordinator_sim_conformance.verdicts.junit import junit_xml
from coordinator_sim_conformance.verdicts.results import RunResult, encoded, file_bytes
from coordinator_sim_conformance.verdicts.tap import tap_text

STDOUT = Path("-")

Target = Annotated[
    str,
    typer.Option(
        help="simulator, serve (over TCP), Kafka itself (oracle:kafka-4.4.0 and so on), or a "
        "process of its own: kafka:4.4.0, kfake, librdkafka-mock, serve:real-time and so on.",
        metavar="TARGET",
    ),
]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        help="Instead of a target: brokers of a running endpoint.", metavar="HOST:PORT,..."
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        help="With --bootstrap: a client's properties file, for TLS and SASL.",
        metavar="FILE",
        exists=True,
        dir_okay=False,
    ),
]
DeclaredFile = Annotated[
    Path | None,
    typer.Option(
        help="With --bootstrap: a TOML file with what cannot be asked.",
        metavar="FILE",
        exists=True,
        dir_okay=False,
    ),
]
WantedText = Annotated[
    list[str] | None,
    typer.Option("-k", help="Only ids with this text; may be given again.", metavar="TEXT"),
]
WantedCase = Annotated[
    list[str] | None,
    typer.Option(help="Only the case of this id; may be given again.", metavar="ID"),
]
TargetName = Annotated[
    str | None,
    typer.Option("--name", help="Name in results; the target's own unless given.", metavar="NAME"),
]
Processes = Annotated[
    int | None,
    typer.Option(
        help="Of a target that is a process: how many run side by side; one for each variant of "
        "its settings unless given.",
        metavar="N",
        min=1,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON instead of counts.")]
ResultFile = Annotated[
    Path | None,
    typer.Option("--result", help="Write the result as JSON here; .gz compresses.", metavar="FILE"),
]
JunitFile = Annotated[
    Path | None, typer.Option("--junit", help="Write JUnit's XML here.", metavar="FILE|-")
]
TapFile = Annotated[
    Path | None, typer.Option("--tap", help="Write TAP version 14 here.", metavar="FILE|-")
]
BaselineFile = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        help="Known gaps, with reasons: no failures. Built in for kfake and librdkafka-mock.",
        metavar="FILE",
    ),
]
HasNoBaseline = Annotated[
    bool,
    typer.Option(
        "--no-baseline", help="Count the known gaps of a target that has a built-in baseline, too."
    ),
]
NewBaselineFile = Annotated[
    Path | None,
    typer.Option("--write-baseline", help="Write what fails now as known gaps.", metavar="FILE"),
]
IsStrict = Annotated[
    bool, typer.Option("--strict", help="Count broken quirks of Kafka's as failures.")
]


class Outputs(Struct, frozen=True, kw_only=True):
    """Where a result goes; `-` is standard output, None is nowhere."""

    as_json: bool
    result: Path | None
    junit: Path | None
    tap: Path | None
    new_baseline: Path | None

    @property
    def takes_stdout(self) -> bool:
        """Whether standard output is for a reader that is a program."""
        return self.as_json or STDOUT in {self.junit, self.tap}

    def check(self) -> None:
        """Refuse before a run what would fail after it.

        Raises:
            ConfigError: two outputs want standard output, or a file's folder does not exist.
        """
        wanting = [
            name
            for name, wants in (
                ("--json", self.as_json),
                ("--junit -", self.junit == STDOUT),
                ("--tap -", self.tap == STDOUT),
            )
            if wants
        ]
        if len(wanting) > 1:
            raise ConfigError(f"{' and '.join(wanting)} both want standard output: give one a file")
        for path in (self.result, self.junit, self.tap, self.new_baseline):
            if path is not None and not path.parent.is_dir():
                raise ConfigError(f"{path}: there is no folder {path.parent}: create it first")

    def write(self, result: RunResult, gaps: Gaps) -> None:
        """Write a result wherever it goes.

        Args:
            result: The run.
            gaps: The baseline it was judged with.
        """
        if self.as_json:
            typer.echo(encoded(result), nl=False)
        if self.result is not None:
            self.result.write_bytes(file_bytes(result, self.result))
        if self.junit is not None:
            _put(self.junit, junit_xml(result))
        if self.tap is not None:
            _put(self.tap, tap_text(result).encode())
        if self.new_baseline is not None:
            self.new_baseline.write_text(baseline_text(result, gaps), encoding="utf-8")
            count = sum(is_open(ending) for ending in result.endings)
            typer.echo(f"{self.new_baseline}: {count} known gaps; say why in each line", err=True)


def _put(path: Path, data: bytes) -> None:
    if path == STDOUT:
        typer.echo(data, nl=False)
    else:
        path.write_bytes(data)
