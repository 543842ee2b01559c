"""`kafka-tests`: Kafka's own tests on a served cluster."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.kafka_tests.results import (
    Invocation,
    Result,
    Verdict,
    write_result,
)
from coordinator_sim_conformance.kafka_tests.running import judged_again, judged_class, stage_for
from coordinator_sim_conformance.kafka_tests.suites import Suite, part_of, suites, suites_named

_DEFAULT: Final = "groups-4.3.1"
_AGAIN: Final = (Verdict.FAILED_ON_KAFKA, Verdict.PASSED_AGAIN)


def kafka_tests(
    tests: Annotated[
        list[str] | None,
        typer.Argument(
            help="Classes of the suite, by the end of their name; none: all.", metavar="[CLASS...]"
        ),
    ] = None,
    suite: Annotated[
        str,
        typer.Option(
            help="Which suite: groups-4.3.1; 4.3.1: all of a release; all.", metavar="SUITE"
        ),
    ] = _DEFAULT,
    profile: Annotated[
        str | None,
        typer.Option(
            help="The Kafka that ours behaves like; default: the suite's release.",
            metavar="PROFILE",
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(help="One of several parts that take equally long.", metavar="N/COUNT"),
    ] = None,
    processes: Annotated[int, typer.Option(help="JVMs at a time.", min=1, max=16, metavar="N")] = 2,
    folder: Annotated[
        Path | None,
        typer.Option(help="Keep logs and reports here; default: a temporary one.", metavar="DIR"),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(help="Existing folder for SUITE.json, what was found.", metavar="DIR"),
    ] = None,
    with_left_out: Annotated[
        bool, typer.Option("--with-left-out", help="Run the tests that are left out too.")
    ] = False,
    list_suites: Annotated[
        bool, typer.Option("--list", help="Print the suites and their classes, run nothing.")
    ] = False,
) -> None:
    """Run Apache Kafka's own compiled tests, unchanged, on served clusters; exit 1 when one fails.

    Their jars come from Maven Central. A test that fails runs again alone, then on Kafka's own test
    cluster. Tests that cannot pass are left out, by a reviewed table.

    Example: conformance kafka-tests JoinGroupRequestTest
    """
    if list_suites:
        _print_suites(suites())
        return
    chosen = _chosen(suites_named(suite), tests or [], part)
    if into is not None and not into.is_dir():
        raise ConfigError(f"--into {into}: no such folder; create it first")
    if profile is not None:
        profile_named(profile)
    root = folder or Path(tempfile.mkdtemp(prefix="kafka-tests-"))
    results = _run(chosen, profile, root.resolve(), processes, with_left_out=with_left_out)
    for result in results:
        _print_counts(result)
        if into is not None:
            write_result(result, into)
    typer.echo(f"logs and reports: {root}")
    if any(result.count(Verdict.FAILED) for result in results):
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _run(
    chosen: Sequence[Suite], profile: str | None, root: Path, processes: int, *, with_left_out: bool
) -> list[Result]:
    """Run the classes of suites, several at a time, and print each when it has ended."""
    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found: dict[Suite, list[Invocation]] = {suite: [] for suite in chosen}
    running: dict[Future[list[Invocation]], tuple[Suite, str]] = {}
    stages = {
        suite: stage_for(suite, profile or suite.profile, root / suite.full_name)
        for suite in chosen
    }
    with ThreadPoolExecutor(processes) as pool:
        for suite, stage in stages.items():
            for each in suite.classes:
                future = pool.submit(judged_class, stage, each.name, with_left_out=with_left_out)
                running[future] = suite, each.name
        try:
            for ended in as_completed(running):
                suite, name = running[ended]
                found[suite] += ended.result()
                _print_class(name, ended.result())
        except BaseException:
            for stage in stages.values():
                stage.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    results = []
    for suite, invocations in found.items():
        judged = tuple(judged_again(stages[suite], invocations))
        _print_others(each for each in judged if each.verdict in _AGAIN)
        results.append(Result(suite.full_name, profile or suite.profile, began, judged))
    return results


def _chosen(wanted: Sequence[Suite], names: Sequence[str], part: str | None) -> tuple[Suite, ...]:
    """The suites with those classes that are to run.

    Raises:
        ConfigError: a name fits no class, or the part is none or has no class.
    """
    for name in names:
        if not any(each.name.endswith(name) for suite in wanted for each in suite.classes):
            raise ConfigError(f"{name}: no class of such a name; see kafka-tests --list")
    number, _, count = (part or "1/1").partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ConfigError(f"--part {part}: give N/COUNT with 1 <= N <= COUNT, as 1/7")
    if names:
        wanted = [suite.only(lambda each: each.name.endswith(tuple(names))) for suite in wanted]
    parts = part_of(wanted, int(number), int(count))
    chosen = tuple(suite for suite in parts if suite.classes)
    if not chosen:
        raise ConfigError(f"--part {part}: there are fewer classes; use fewer parts")
    return chosen


def _print_suites(chosen: Sequence[Suite]) -> None:
    for suite in chosen:
        typer.echo(f"{suite.full_name}: {len(suite.classes)} classes")
        for each in suite.classes:
            typer.echo(f"  {each.name}")


def _print_class(name: str, invocations: Sequence[Invocation]) -> None:
    counts = Counter(each.verdict for each in invocations)
    seconds = sum(each.seconds for each in invocations)
    left_out = counts[Verdict.LEFT_OUT]
    words = f", {left_out} left out" if left_out else ""
    ran = len(invocations) - left_out
    typer.echo(f"{name}: {counts[Verdict.PASSED]} of {ran} in {seconds:.0f} s{words}")
    _print_others(each for each in invocations if each.verdict is Verdict.FAILED)


def _print_others(invocations: Iterable[Invocation]) -> None:
    for each in invocations:
        method = each.test.partition("#")[2]
        typer.echo(f"  {each.verdict}: {method}{each.index}: {each.message}")


def _print_counts(result: Result) -> None:
    words = ", ".join(f"{result.count(each)} {each}" for each in Verdict if result.count(each))
    typer.echo(f"{result.suite} as Kafka {result.profile}: {words}")
