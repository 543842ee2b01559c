"""Kafka's command-line tools print about ours what they print about a real broker."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim_conformance.real_kafka.kafka import (
    OLD_BROKER_VERSION,
    TOOLS_VERSION,
    Broker,
    java_command,
    run_java,
)
from coordinator_sim_conformance.real_kafka.tools import TOOLS, Said, Tools
from tests.real_kafka.settling import told_in_the_end
from tests.real_kafka.test_connect_member import await_true
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.real_kafka

NO_DELAY = "group.initial.rebalance.delay.ms=0"
VERIFIABLE = "org.apache.kafka.tools.Verifiable"
COUNT = 3000
ORDERS = ("--topic", "orders")
CONSOLE = ("--group", "console")
NOBODY = ("--group", "nobody")
SETTINGS = ("--entity-type", "topics", "--entity-name", "orders")
DETAILS = ("print.partition=true", "print.offset=true", "print.key=true")
DEADLINE_S = 60


def calls(folder: Path) -> Iterator[tuple[str, ...]]:
    """What an operator does, from the topic's creation to its deletion."""
    sizes = ("--partitions", "3", "--replication-factor", "1", "--config", "retention.ms=3600000")
    changed = ("--add-config", "cleanup.policy=compact,segment.bytes=2097152")
    unset = ("--delete-config", "retention.ms")
    yield ("topics", "--create", *ORDERS, *sizes)
    yield ("topics", "--create", *ORDERS, "--partitions", "3")
    yield ("topics", "--list")
    yield ("topics", "--describe", *ORDERS)
    yield ("topics", "--alter", *ORDERS, "--partitions", "4")
    yield ("topics", "--alter", *ORDERS, "--partitions", "2")
    yield ("configs", *SETTINGS, "--alter", *changed, *unset)
    yield ("configs", *SETTINGS, "--describe", "--all")
    yield ("configs", *SETTINGS, "--alter", "--add-config", "nosuch=1")
    yield ("configs", *SETTINGS, "--alter", "--delete-config", "cleanup.policy")
    yield ("configs", *SETTINGS, "--describe")
    yield ("produce", *ORDERS, "--property", "parse.key=true", "--property", "key.separator=:")
    details = [word for detail in DETAILS for word in ("--property", detail)]
    wanted = ("--from-beginning", "--max-messages", "40")
    yield ("consume", *ORDERS, *CONSOLE, *wanted, *details)
    yield ("offsets", *ORDERS)
    yield ("offsets", *ORDERS, "--time", "earliest")
    yield from group_calls()
    yield ("transactions", "list")
    yield ("transactions", "describe", "--transactional-id", "nobody")
    yield ("transactions", "describe-producers", *ORDERS, "--partition", "0")
    cut = folder / "cut.json"
    rows = [{"topic": "orders", "partition": 0, "offset": 2}]
    cut.write_text(json.dumps({"version": 1, "partitions": rows}), encoding="utf-8")
    yield ("delete-records", "--offset-json-file", str(cut))
    yield ("offsets", *ORDERS, "--time", "earliest")
    yield ("cluster", "cluster-id")
    yield ("topics", "--delete", *ORDERS)
    yield ("topics", "--describe", *ORDERS)


def group_calls() -> Iterator[tuple[str, ...]]:
    """What he does with the group of the console consumer, which has left."""
    yield ("groups", "--list")
    yield ("groups", "--list", "--state")
    yield ("groups", "--describe", *CONSOLE)
    yield ("groups", "--describe", *CONSOLE, "--state")
    yield ("groups", "--describe", *CONSOLE, "--members", "--verbose")
    yield ("groups", "--describe", *NOBODY)
    yield ("groups", "--reset-offsets", *CONSOLE, "--topic", "orders:0", "--to-earliest")
    yield ("groups", "--reset-offsets", *CONSOLE, *ORDERS, "--shift-by", "-3", "--execute")
    yield ("groups", "--delete-offsets", *CONSOLE, "--topic", "orders:1")
    yield ("groups", "--describe", "--all-groups", "--offsets")
    yield ("groups", "--delete", *CONSOLE)
    yield ("groups", "--delete", *NOBODY)
    yield ("groups", "--list")


Transcript = list[tuple[tuple[str, ...], Said]]
"""Each call and how it ended, without what no two clusters have in common."""


def transcript(bootstrap: str, folder: Path, expected: Transcript | None = None) -> Transcript:
    """What the tools say of a cluster, which may need a moment to say what is expected."""
    text = "".join(f"k{number}:v{number}\n" for number in range(40))
    found: Transcript = []
    with Tools(bootstrap) as tools:
        for call in calls(folder):

            def say(call: tuple[str, ...] = call) -> Said:
                said = tools.run(*call, text=text)
                lines = tuple(plain(line) for line in said.lines)
                return Said(said.status, tuple(sorted(lines)) if call[0] == "consume" else lines)

            if expected is not None and only_looks(call):
                found.append((call, told_in_the_end(say, expected[len(found)][1])))
            else:
                found.append((call, say()))
    return found


def only_looks(call: tuple[str, ...]) -> bool:
    """Whether a call changes nothing."""
    is_told = {"--list", "--describe"}.intersection(call)
    return bool(is_told) or call[0] in {"offsets", "transactions", "cluster"}


def plain(line: str) -> str:
    """A line without ports, ids and times."""
    line = re.sub(r"127\.0\.0\.1:\d+", "HOST", line)
    line = re.sub(r"TopicId: \S+", "TopicId: ID", line)
    return re.sub(r"\b1[78]\d{11}\b", "TIME", line)


@pytest.mark.parametrize(
    ("version", "profile"),
    [(TOOLS_VERSION, "4.3"), pytest.param(OLD_BROKER_VERSION, "3.9", marks=pytest.mark.nightly)],
)
def test_tools_print_what_they_print_about_a_real_broker(
    tmp_path: Path, version: str, profile: str
) -> None:
    """Topics, settings, records, offsets, groups and transactions, in 36 calls of 9 tools."""
    with serving("--port", "0", "--profile", profile, "--set", NO_DELAY) as ready:
        ours = transcript(ready["bootstrap"], tmp_path)
    with Broker(tmp_path / "broker", {}, version) as broker:
        theirs = transcript(broker.bootstrap, tmp_path, ours)
    for mine, real in zip(ours, theirs, strict=True):
        assert mine == real
    # Those of share groups are told of in `test_share_groups`.
    others = {"log-dirs", "broker-api-versions", "features"}
    others |= {"all-groups", "share-groups", "share-consume"}
    assert {call[0] for call, _ in ours} == set(TOOLS) - others


class Verifiable:
    """A VerifiableConsumer in a process of its own."""

    def __init__(self, bootstrap: str, folder: Path, name: str) -> None:
        self.out = folder / f"{name}.jsonl"
        options = ("--bootstrap-server", bootstrap, "--group-id", "verified", *ORDERS)
        session = ("--session-timeout", "6000", "--group-protocol", "classic", "--verbose")
        command = java_command(TOOLS_VERSION, f"{VERIFIABLE}Consumer", *options, *session)
        with self.out.open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)

    def told(self, kind: str) -> list[dict[str, Any]]:
        """The events of one kind so far."""
        lines = self.out.read_text(encoding="utf-8").splitlines(keepends=True)
        events = [json.loads(line) for line in lines if line.startswith("{") and line[-1] == "\n"]
        return [event for event in events if event["name"] == kind]

    @property
    def owns(self) -> int:
        """How many partitions it was given last."""
        return len(self.given[-1]["partitions"]) if self.given else 0

    @property
    def given(self) -> list[dict[str, Any]]:
        """The assignments that it was given."""
        return self.told("partitions_assigned")

    @property
    def committed(self) -> int:
        """How many records it has read and committed."""
        ends = {
            (each["partition"], each["offset"])
            for event in self.told("offsets_committed")
            if event["success"]
            for each in event["offsets"]
        }
        records = self.told("record_data")
        done = dict(sorted(ends))
        return sum(record["offset"] < done.get(record["partition"], 0) for record in records)


@contextmanager
def verifiable(bootstrap: str, folder: Path) -> Iterator[tuple[Verifiable, Verifiable]]:
    """Two consumers of one group; the first gets its partitions before the other comes."""
    first = Verifiable(bootstrap, folder, "first")
    second = None
    try:
        await_true(lambda: bool(first.given), "the first has partitions")
        second = Verifiable(bootstrap, folder, "second")
        yield first, second
    finally:
        for consumer in filter(None, (first, second)):
            consumer.process.kill()
            consumer.process.wait()


def produce(bootstrap: str, prefix: int) -> set[tuple[int, int, str]]:
    """Partition, offset and value of all that a VerifiableProducer had acknowledged."""
    options = ("--bootstrap-server", bootstrap, *ORDERS, "--value-prefix", str(prefix))
    sizes = ("--max-messages", str(COUNT), "--repeating-keys", "50")
    done = run_java(TOOLS_VERSION, f"{VERIFIABLE}Producer", *options, *sizes)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [e["acked"] for e in events if e["name"] == "tool_data"] == [COUNT]
    return {
        (event["partition"], event["offset"], event["value"])
        for event in events
        if event["name"] == "producer_send_success"
    }


def test_verifiable_consumers_read_what_a_verifiable_producer_wrote(tmp_path: Path) -> None:
    """Exactly that, in order, also after one was killed; tools see the group alive and empty."""
    with serving("--port", "0", "--topics", "orders:4") as ready:
        bootstrap = ready["bootstrap"]
        written = produce(bootstrap, 1)
        assert len(written) == COUNT
        with verifiable(bootstrap, tmp_path) as (first, second):

            def has_all() -> bool:
                return first.committed + second.committed == len(written)

            await_true(lambda: (first.owns, second.owns) == (2, 2), "each has its half")
            await_true(has_all, "all is read and committed")
            with Tools(bootstrap) as tools:
                check_members_are_seen(tools)
            first.process.kill()
            await_true(lambda: second.owns == 4, "the other has everything")
            written |= produce(bootstrap, 2)
            await_true(has_all, "what came later is read, too")
            second.process.terminate()
            second.process.wait(DEADLINE_S)
            assert second.told("shutdown_complete")
        check_exact(written, first, second)


def check_exact(written: set[tuple[int, int, str]], *consumers: Verifiable) -> None:
    """Every record was read once, each partition in its order."""
    read = [
        (record["partition"], record["offset"], record["value"])
        for consumer in consumers
        for record in consumer.told("record_data")
    ]
    assert len(read) == len(written)
    assert set(read) == written
    for partition in range(4):
        offsets = [offset for place, offset, _ in read if place == partition]
        assert offsets == list(range(len(offsets)))


def check_members_are_seen(tools: Tools) -> None:
    """Their states, shares and lags; a group that lives is neither deleted nor reset."""
    verified = ("--group", "verified")
    state = tools.run("groups", "--describe", *verified, "--state").lines[-1].split()
    assert state[3:] == ["range", "Stable", "2"]
    members = tools.run("groups", "--describe", *verified, "--members", "--verbose").lines[1:]
    assert sorted(line.split()[4] for line in members) == ["2", "2"]
    places = {place for line in members for place in re.findall(r"orders:([\d,]+)", line)}
    assert places == {"0,1", "2,3"}
    lags = tools.run("groups", "--describe", *verified).lines[1:]
    assert [line.split()[5] for line in lags] == ["0"] * 4
    refused = tools.run("groups", "--delete", *verified)
    assert "GroupNotEmptyException" in refused.lines[-1]
    reset = tools.run("groups", "--reset-offsets", *verified, *ORDERS, "--to-earliest", "--execute")
    assert "is inactive, but the current state is Stable" in reset.lines[0]
