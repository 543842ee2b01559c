"""The page of docs/ about Kafka's own tests: what ran, what passed, what is left out and why."""

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from msgspec.structs import replace

from coordinator_sim_conformance.kafka_tests.results import (
    Invocation,
    Result,
    Verdict,
    left_out,
    read_result,
)
from coordinator_sim_conformance.kafka_tests.suites import suites_named

RESULTS = Path(__file__).parent / "kafka-tests-results"
ABOUT = {
    "brokers": "requests beside the group coordinator: transactions, records, offsets of logs",
    "connect": "Kafka Connect's workers, whole, in one JVM",
    "door": "Kafka's unit tests of its group coordinator, at `coordinator-sim lines`",
    "groups": "requests, consumers, tools: what touches groups over a socket",
    "requests": "requests of groups, by the tests of older releases",
    "streams": "Kafka Streams' applications, whole, in one JVM",
    "tools": "Kafka's command-line tools for groups, topics and settings",
}
PASSED = (Verdict.PASSED, Verdict.PASSED_AGAIN)


def kafka_tests_page(header: str) -> str:
    """Every recorded run of Kafka's own tests, by suite and class."""
    results = [with_clusters(read_result(path)) for path in sorted(RESULTS.glob("*.json"))]
    total = sum(len(result.invocations) for result in results)
    passed = sum(passed_of(result.invocations) for result in results)
    failed = sum(result.count(Verdict.FAILED) for result in results)
    return "".join(
        [
            header,
            "# Kafka's own tests\n\n",
            f"**{passed} of {total}** invocations of Apache Kafka's own compiled tests pass on ",
            "`serve` and, of its coordinator's unit tests, on `lines`, unchanged. ",
            f"Failed: {failed}. The others are left out for a reason, or fail on Kafka too.\n\n",
            "A test of Kafka's makes its cluster through one class. On the class path stands ",
            "one of ours before it, which starts `coordinator-sim serve` with the test's ",
            "settings. What a test asks of the broker's JVM is answered from the wire where that ",
            "can be, and throws where it cannot. A test that fails runs again alone, then on ",
            "Kafka's own test cluster, the control.\n\n",
            "To run one class (Java 17, Maven; the jars come from Maven Central, once):\n\n",
            "```sh\nconformance kafka-tests JoinGroupRequestTest\n```\n\n",
            "## Suites\n\n",
            "*classes* are those of a recorded run, of those that the suite has.\n\n",
            "| suite | profile | what | classes | passed | failed | on Kafka too | left out |\n",
            "|---|---|---|---|---|---|---|---|\n",
            *map(suite_row, results),
            *(line for result in results for line in class_lines(result)),
            *left_out_lines(),
        ]
    )


def with_clusters(result: Result) -> Result:
    """A result without those tests that make no cluster: they would count for nothing of ours.

    The classes of `groups` make theirs by `@ClusterTest`, whose invocations have an index.
    """
    if not result.suite.startswith("groups-"):
        return result
    return replace(result, invocations=tuple(each for each in result.invocations if each.index))


def passed_of(invocations: Iterable[Invocation]) -> int:
    """How many passed, at the first try or when run again alone."""
    return sum(each.verdict in PASSED for each in invocations)


def suite_row(result: Result) -> str:
    """One line of the table of suites."""
    about = ABOUT[result.suite.partition("-")[0]]
    (suite,) = suites_named(result.suite)
    ran = {each.test.partition("#")[0] for each in result.invocations}
    counts = [
        f"{len(ran)} of {len(suite.classes)}",
        f"{passed_of(result.invocations)} of {len(result.invocations)}",
        result.count(Verdict.FAILED),
        result.count(Verdict.FAILED_ON_KAFKA),
        result.count(Verdict.LEFT_OUT),
    ]
    cells = (result.suite, result.profile, about, *counts)
    return f"| {' | '.join(map(str, cells))} |\n"


def class_lines(result: Result) -> Sequence[str]:
    """The classes of a suite, with the tests that did not simply pass."""
    lines = [f"\n## {result.suite}\n\n", "| class | passed | others |\n|---|---|---|\n"]
    classes: dict[str, list[Invocation]] = {}
    for each in result.invocations:
        classes.setdefault(each.test.partition("#")[0], []).append(each)
    for name, invocations in sorted(classes.items()):
        counts = Counter(each.verdict for each in invocations)
        others = [f"{counts[each]} {each}" for each in Verdict if counts[each]]
        words = ", ".join(others[1:] if counts[Verdict.PASSED] else others)
        lines.append(f"| {name} | {passed_of(invocations)} of {len(invocations)} | {words} |\n")
    failed = [
        f"\n- {each.test}{each.index}, {each.verdict}: {escape(each.message, quote=False)}"
        for each in result.invocations
        if each.verdict not in (*PASSED, Verdict.LEFT_OUT)
    ]
    return [*lines, *failed, "\n"] if failed else lines


def left_out_lines() -> Sequence[str]:
    """Tests that are left out, by reason."""
    lines = [
        "\n## What is left out\n\n",
        "Each reason was reviewed: `conformance/kafka_tests/left_out.toml`.\n\n",
        "| test | reason |\n|---|---|\n",
    ]
    return lines + [f"| {test} | {why} |\n" for test, why in sorted(left_out().items())]
