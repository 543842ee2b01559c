"""Share groups of Java's clients and Kafka's own tools: they print what they do at real Kafka.

The same consumers and the same calls at a real broker and at ours; before and after a restart.
"""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka import kafka
from coordinator_sim_conformance.real_kafka.tools import Said, Tools
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.real_kafka

QUICK = {
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
OPTIONS = tuple(word for name in QUICK for word in ("--set", f"{name}={QUICK[name]}"))
MAIN = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
GROUP = ("--group", "app")
ORDERS = ("--topic", "orders")
MEMBER = re.compile(r"(?<= )[\w/+-]{22}(?= )")
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
EPOCH = re.compile(r"leaderEpoch=\d+")
LEVEL = re.compile(r"(Feature: share\.version\s+Supported.*?FinalizedVersionLevel: \d+)")
COUNT = 20
PATIENCE_S = 60


def played(version: str, bootstrap: str, part: str) -> list[str]:
    """What a part of the story prints.

    A broker that restarts leads at a later epoch twice in Kafka, once here.
    """
    done = kafka.run_java(version, str(kafka.HERE / "ShareGroupClient.java"), bootstrap, part)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return [EPOCH.sub("leaderEpoch=?", each) if part == "after" else each for each in lines]


@pytest.mark.parametrize(
    ("version", "profile"),
    [
        (kafka.BROKER_VERSION, "4.4"),
        pytest.param(kafka.TOOLS_VERSION, "4.3", marks=pytest.mark.nightly),
    ],
)
def test_records_are_shared_given_up_and_done_with_as_at_a_real_broker(
    tmp_path: Path, version: str, profile: str
) -> None:
    """Deliveries and their counts, locks, acknowledgements, isolation, offsets, a restart.

    Kafka's client asserts nothing here: each line is its own account, and ours is Kafka's.
    """
    theirs = []
    with kafka.Broker(tmp_path / "theirs", dict(QUICK), version) as broker:
        theirs += played(version, broker.bootstrap, "before")
        broker.stop()
        broker.start()
        theirs += played(version, broker.bootstrap, "after")
    assert "to another: [v0@0 again, v1@1 again, v2@2 again, v3@3 again]" in theirs
    ours = []
    where = ("--profile", profile, "--log-dir", tmp_path / "ours", *OPTIONS)
    for part in ("before", "after"):
        with serving("--port", "0", *where) as ready:
            ours += played(version, ready["bootstrap"], part)

    assert ours == theirs


def while_it_lives() -> Iterator[tuple[str, ...]]:
    """What an administrator asks of a group with a member."""
    yield ("share-groups", "--list")
    yield ("share-groups", "--list", "--state")
    yield ("share-groups", "--list", "--state", "stable")
    yield ("all-groups", "--list")
    yield ("all-groups", "--list", "--share")
    yield ("all-groups", "--list", "--group-type", "consumer")
    yield ("groups", "--describe", *GROUP)
    for detail in ("", "--members", "--state", "--offsets"):
        yield tuple(filter(None, ("share-groups", "--describe", *GROUP, detail)))
        yield tuple(filter(None, ("share-groups", "--describe", *GROUP, detail, "--verbose")))
    yield ("share-groups", "--reset-offsets", *GROUP, *ORDERS, "--to-earliest", "--execute")
    yield ("share-groups", "--delete-offsets", *GROUP, *ORDERS)
    yield ("share-groups", "--delete", *GROUP)


def afterwards() -> Iterator[tuple[str, ...]]:
    """What is asked when it has left."""
    yield ("share-groups", "--describe", *GROUP, "--state")
    yield ("share-groups", "--describe", *GROUP, "--members")
    yield ("share-groups", "--describe", *GROUP)
    reset = ("share-groups", "--reset-offsets", *GROUP)
    yield (*reset, *ORDERS, "--to-earliest", "--dry-run")
    yield (*reset, *ORDERS, "--to-earliest", "--execute")
    yield ("share-groups", "--describe", *GROUP)
    yield ("share-consume", *ORDERS, *GROUP, "--max-messages", str(COUNT), "--timeout-ms", "20000")
    yield (*reset, "--all-topics", "--to-latest", "--execute")
    yield (*reset, *ORDERS, "--to-datetime", "2020-01-01T00:00:00.000", "--execute")
    yield (*reset, "--topic", "nothing", "--to-latest", "--execute")
    yield ("share-groups", "--reset-offsets", "--group", "new", *ORDERS, "--to-latest", "--execute")
    yield ("share-groups", "--describe", "--group", "new", "--offsets")
    yield ("share-groups", "--delete-offsets", *GROUP, *ORDERS)
    yield ("share-groups", "--delete-offsets", *GROUP, *ORDERS)
    yield ("share-groups", "--delete-offsets", *GROUP, "--topic", "nothing")
    yield ("share-groups", "--describe", *GROUP)
    yield ("share-groups", "--delete", *GROUP)
    yield ("share-groups", "--delete", *GROUP)
    yield ("share-groups", "--describe", *GROUP)
    yield ("share-groups", "--list", "--state")


def settings() -> Iterator[tuple[str, ...]]:
    """Settings of a group, in and out of their bounds."""
    alter = ("configs", "--alter", *GROUP, "--add-config")
    for each in (
        "share.auto.offset.reset=earliest",
        "share.auto.offset.reset=by_duration:PT1H",
        "share.auto.offset.reset=somewhere",
        "share.record.lock.duration.ms=1000",
        "share.record.lock.duration.ms=10",
        "share.delivery.count.limit=3",
        "share.delivery.count.limit=30",
        "share.isolation.level=read_committed",
        "share.isolation.level=serializable",
        "share.heartbeat.interval.ms=60000",
    ):
        yield (*alter, each)
    yield ("configs", "--describe", *GROUP)
    yield ("configs", "--describe", *GROUP, "--all")


def features() -> Iterator[tuple[str, ...]]:
    """The level of `share.version` goes down and up again; nothing is shared in between."""
    yield ("features", "describe")
    yield ("features", "downgrade", "--feature", "share.version=0")
    yield ("features", "describe")
    yield ("share-groups", "--list")
    yield ("share-groups", "--describe", "--group", "new")
    yield ("share-groups", "--describe", "--group", "new", "--state")
    yield ("share-groups", "--delete", "--group", "new")
    yield ("features", "upgrade", "--feature", "share.version=9")
    yield ("features", "upgrade", "--feature", "share.version=1")
    yield ("features", "describe")


def lines(said: Said) -> list[str]:
    """What a tool said, without ids that are drawn; rows of a table have no order."""
    named = [MEMBER.sub("MEMBER", ADDRESS.sub("ADDRESS", each)) for each in said.lines]
    masked = [re.sub(r"\s+", " ", each).strip() for each in named]
    # Where Kafka's classes were when they failed is theirs alone.
    return [str(said.status), *sorted(each for each in masked if not each.startswith("at "))]


@contextmanager
def member(bootstrap: str, log: Path) -> Iterator[None]:
    """A console consumer that shares `orders`, and has read all of it."""
    options = ("--bootstrap-server", bootstrap, *ORDERS, *GROUP)
    command = kafka.java_command(kafka.TOOLS_VERSION, MAIN, *options)
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline_s = time.monotonic() + PATIENCE_S
        while len(log.read_text("utf-8").splitlines()) < COUNT:
            assert process.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < deadline_s, log.read_text("utf-8")
            time.sleep(0.1)
        # What was read counts as done with the polls that follow.
        time.sleep(1)
        yield
        process.terminate()
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()


def story(bootstrap: str, log: Path) -> list[tuple[tuple[str, ...], list[str]]]:
    """Each call, and what was said."""
    told = []
    with Tools(bootstrap) as tools:
        create = ("topics", "--create", *ORDERS, "--partitions", "3", "--replication-factor", "1")
        assert tools.run(*create).status == 0
        told += [(call, lines(tools.run(*call))) for call in settings()]
        values = "".join(f"{number % 3}:{number}\n" for number in range(COUNT))
        keys = ("--property", "parse.key=true", "--property", "key.separator=:")
        assert tools.run("produce", *ORDERS, *keys, text=values).status == 0
        with member(bootstrap, log):
            told += [(call, lines(tools.run(*call))) for call in while_it_lives()]
        told.append((("values",), sorted(log.read_text("utf-8").splitlines()[:COUNT])))
        told += [(call, lines(tools.run(*call))) for call in afterwards()]
        for call in features():
            said = lines(tools.run(*call))
            if call[1] == "describe":
                said = [found[1] for each in said if (found := LEVEL.search(each))]
            told.append((call, said))
    return told


def test_tools_say_of_share_groups_what_they_say_at_a_real_broker(tmp_path: Path) -> None:
    """Settings, lists, descriptions, offsets, refusals, deletion, and the feature's levels."""
    with kafka.Broker(tmp_path, dict(QUICK)) as broker:
        theirs = story(broker.bootstrap, tmp_path / "theirs.txt")
    with serving("--port", "0", *OPTIONS) as ready:
        ours = story(ready["bootstrap"], tmp_path / "ours.txt")

    for call, said in zip(theirs, ours, strict=True):
        assert said == call


QUEUE = "errors.deadletterqueue"
CREATES = f"{QUEUE}.auto.create.topics.enable"
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "serve.md"


def rejected(bootstrap: str) -> list[str]:
    """What Kafka's consumers print of records that one of them rejects."""
    settings = {
        "share.auto.offset.reset": "earliest",
        f"{QUEUE}.topic.name": "dlq.app",
        f"{QUEUE}.copy.record.enable": "true",
    }
    added = ",".join(f"{name}={value}" for name, value in settings.items())
    reads = ("--from-beginning", "--formatter-property", "print.headers=true")
    with Tools(bootstrap) as tools:
        assert tools.run("configs", "--alter", *GROUP, "--add-config", added).status == 0
        assert tools.run("produce", *ORDERS, text="1\n2\n3\n").status == 0
        said = tools.run("share-consume", *ORDERS, *GROUP, "--reject", "--max-messages", "3")
        queue = tools.run("consume", "--topic", "dlq.app", "--max-messages", "3", *reads)
    return [each for each in (*said.lines, *queue.lines) if "KIP-848" not in each]


def test_rejected_records_are_in_the_queue_as_at_a_real_broker(tmp_path: Path) -> None:
    """The topic is created; the guide shows what is printed. A retry may change its order."""
    with kafka.Broker(tmp_path, {**QUICK, CREATES: "true"}) as broker:
        theirs = rejected(broker.bootstrap)
    with serving("--port", "0", *OPTIONS, "--set", f"{CREATES}=true") as ready:
        ours = rejected(ready["bootstrap"])

    assert sorted(ours) == sorted(theirs)
    letters = [each for each in ours if each.startswith("__dlq")]
    assert "\n".join(letters) in GUIDE.read_text("utf-8")
