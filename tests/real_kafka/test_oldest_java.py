"""Java's clients of Kafka 0.10.2 see what a real 0.10.2.2 shows them; 4.x is refused alike."""

import re
import subprocess
from pathlib import Path

import pytest

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.real_kafka.kafka import HERE, jars_of, java_command, run_java
from coordinator_sim_conformance.real_kafka.tools import Tools
from coordinator_sim_conformance.real_kafka.zookeeper_kafka import ZooKeeperBroker
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.real_kafka

OLDEST = "0.10.2.2"
PARTITIONS = "num.partitions=6"
TIMEOUT_S = 60
ORDERS = ("--topic", "orders")
NOT_LISTED = "Failed to list transactions: The node does not support LIST_TRANSACTIONS."
LINES = "".join(f"key{number % 7}\tvalue{number}\n" for number in range(500))
MODERN = (
    ("topics", "--list"),
    ("groups", "--list"),
    ("groups", "--describe", "--group", "oldest-Range"),
    ("consume", *ORDERS, "--from-beginning", "--timeout-ms", "2500"),
    ("transactions", "list"),
    ("produce", *ORDERS),
)
"""What 4.3.1 tries, in this order: what its producer says comes late."""


def ran(*arguments: str, text: str = "") -> str:
    """What a program of the old release prints."""
    done = subprocess.run(
        java_command(OLDEST, *arguments),
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def old_clients(bootstrap: str) -> dict[str, list[str]]:
    """What each of the old programs prints."""
    story = run_java(OLDEST, str(HERE / "OldestClient.java"), bootstrap)
    assert story.returncode == 0, story.stdout + story.stderr
    group = ("kafka.admin.ConsumerGroupCommand", "--bootstrap-server", bootstrap)
    listed = ("--broker-list", bootstrap, "--topic", "orders")
    parsed = ("--property", "parse.key=true")
    topic = ("--topic", "console")
    ran("kafka.tools.ConsoleProducer", "--broker-list", bootstrap, *topic, *parsed, text=LINES)
    reading = ("--from-beginning", "--max-messages", "500", "--property", "print.key=true")
    grouped = ("--consumer-property", "group.id=printer")
    return {
        "client": story.stdout.splitlines(),
        "describe": sorted(ran(*group, "--describe", "--group", "oldest-Range").splitlines()),
        "offsets": sorted(ran("kafka.tools.GetOffsetShell", *listed, "--time", "-1").splitlines()),
        "console": sorted(
            ran(
                "kafka.tools.ConsoleConsumer",
                "--bootstrap-server",
                bootstrap,
                *topic,
                *reading,
                *grouped,
            ).splitlines()
        ),
    }


def modern_tools(bootstrap: str) -> dict[str, tuple[int, str]]:
    """How each tool of 4.3.1 ends: its status, and its last error or else its lines."""
    ends = {}
    with Tools(bootstrap) as tools:
        for tool, *arguments in MODERN:
            said = tools.run(tool, *arguments, text="late\n")
            errors = [line for line in said.lines if re.search(r"Exception: |^Failed", line)]
            last = (
                errors[-1].rpartition("Exception: ")[2] if errors else " ".join(sorted(said.lines))
            )
            ends[" ".join((tool, *arguments))] = (said.status, last)
    return ends


def test_old_clients_work_and_new_ones_are_refused_as_at_a_real_broker(tmp_path: Path) -> None:
    """Groups of threads, all compressions, the console and tools; then what 4.3.1 is told."""
    try:
        jars_of(OLDEST)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    with ZooKeeperBroker(tmp_path, OLDEST, {"num.partitions": "6"}) as broker:
        theirs = old_clients(broker.bootstrap), modern_tools(broker.bootstrap)
    with serving("--port", "0", "--profile", "0.10.2", "--set", PARTITIONS) as ready:
        ours = old_clients(ready["bootstrap"]), modern_tools(ready["bootstrap"])
    assert ours == theirs
    old, modern = ours
    assert sum("read 4800 of 4800 in order" in line for line in old["client"]) == 1
    assert old["console"] == sorted(LINES.splitlines())
    refusals = {end for status, end in modern.values() if "support" in end}
    assert refusals == {
        "MetadataRequest versions older than 4 don't support the allowAutoTopicCreation field",
        "The node does not support INIT_PRODUCER_ID",
        f"{NOT_LISTED} Enable debug logging for additional detail.",
    }
