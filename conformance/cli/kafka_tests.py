"""`kafka-tests`: Kafka's own tests on a served cluster."""

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.kafka_tests.results import Invocation, Result, Verdict
from coordinator_sim_conformance.kafka_tests.running import judged_class, stage_for
from coordinator_sim_conformance.kafka_tests.suites import (
    Suite,
    TestClass,
    part_of,
    suite_named,
    suites,
)

_DEFAULT: Final = "groups-4.3.1"
_TOLD: Final = (Verdict.FAILED, Verdict.FAILED_ON_KAFKA, Verdict.PASSED_AGAIN)


def kafka_tests(
    tests: Annotated[
        list[str] | None,
        typer.Argument(
            help="Classes of the suite, by the end of their name; none: all.", metavar="[CLASS...]"
        ),
    ] = None,
    suite: Annotated[
        str, typer.Option(help="Which suite; --list prints all.", metavar="NAME-RELEASE")
    ] = _DEFAULT,
    profile: Annotated[
        str | None,
        typer.Option(help="The Kafka that serve behaves like; default: the suite's release."),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(help="One of several parts that take equally long.", metavar="N/COUNT"),
    ] = None,
    processes: Annotated[int, typer.Option(help="JVMs at a time.", min=1, max=16)] = 2,
    folder: Annotated[
        Path | None,
        typer.Option(help="Keep logs and reports here; default: a folder in /tmp.", metavar="DIR"),
    ] = None,
    result: Annotated[
        Path | None, typer.Option(help="Write what was found as JSON.", metavar="FILE")
    ] = None,
    list_suites: Annotated[
        bool, typer.Option("--list", help="Print the suites and their classes, run nothing.")
    ] = False,
) -> None:
    """Run Apache Kafka's own compiled tests, unchanged, on a served cluster; exit 1 when one fails.

    Their jars come from Maven Central. A test that fails runs again alone, then on Kafka's own test
    cluster. The tests that need the inside of a broker are left out, by a reviewed table.

    Example: conformance kafka-tests JoinGroupRequestTest
    """
    if list_suites:
        _print_suites()
        return
    chosen = suite_named(suite)
    classes = _chosen(chosen, tests or [], part)
    root = folder or Path(tempfile.mkdtemp(prefix="kafka-tests-"))
    serve = (sys.executable, "-m", "coordinator_sim", "serve", "--profile")
    stage = stage_for(chosen, (*serve, profile or chosen.profile), root.resolve())
    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    invocations: list[Invocation] = []
    with ThreadPoolExecutor(processes) as pool:
        running = {pool.submit(judged_class, stage, each.name): each for each in classes}
        for ended in as_completed(running):
            invocations += ended.result()
            _print_class(running[ended].name, ended.result())
    judged = Result(chosen.full_name, profile or chosen.profile, began, tuple(invocations))
    if result is not None:
        result.write_bytes(msgspec.json.format(msgspec.json.encode(judged)) + b"\n")
    _print_counts(judged, root)
    if any(each.verdict is Verdict.FAILED for each in invocations):
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _chosen(suite: Suite, wanted: Sequence[str], part: str | None) -> tuple[TestClass, ...]:
    """The classes to run.

    Raises:
        ConfigError: a name fits no class, or the part is none.
    """
    classes = suite.classes
    for name in wanted:
        if not any(each.name.endswith(name) for each in classes):
            raise ConfigError(f"{name}: no class of {suite.full_name}; see kafka-tests --list")
    if wanted:
        classes = tuple(each for each in classes if each.name.endswith(tuple(wanted)))
    if part is None:
        return classes
    number, _, count = part.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ConfigError(f"--part {part}: give N/COUNT with 1 <= N <= COUNT, as 1/7")
    return part_of(classes, int(number), int(count))


def _print_suites() -> None:
    for suite in suites():
        typer.echo(f"{suite.full_name}: {len(suite.classes)} classes")
        for each in suite.classes:
            typer.echo(f"  {each.name}")


def _print_class(name: str, invocations: Sequence[Invocation]) -> None:
    counts = Counter(each.verdict for each in invocations)
    passed = counts[Verdict.PASSED] + counts[Verdict.PASSED_AGAIN]
    seconds = sum(each.seconds for each in invocations)
    others = [f"{counts[each]} {each}" for each in Verdict if each is not Verdict.PASSED]
    words = ", ".join(each for each in others if not each.startswith("0 "))
    typer.echo(f"{name}: {passed} of {len(invocations)} in {seconds:.0f} s {words}".rstrip())
    for each in invocations:
        if each.verdict in _TOLD:
            method = each.test.partition("#")[2]
            typer.echo(f"  {each.verdict}: {method}{each.index}: {each.message}")


def _print_counts(judged: Result, root: Path) -> None:
    counts = Counter(each.verdict for each in judged.invocations)
    words = ", ".join(f"{counts[each]} {each}" for each in Verdict if counts[each])
    total = len(judged.invocations)
    typer.echo(f"{judged.suite} on serve --profile {judged.profile}: {total} run: {words}")
    typer.echo(f"logs and reports: {root}")
