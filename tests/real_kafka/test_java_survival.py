"""What Java's clients committed survives SIGKILL, and a real broker loads our segments."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka import kafka
from coordinator_sim_conformance.real_kafka.offsets_log import OFFSETS_PARTITIONS, PROPERTIES
from coordinator_sim_conformance.real_kafka.tools import Tools
from tests.unit.cli.test_serve import COMMAND

pytestmark = pytest.mark.real_kafka

GROUPS = ("plain", "simple", "txn", "reader")
LINES = tuple(f"line{number}" for number in range(100))
TOPIC = ("--topic", "lines")
READER = (*TOPIC, "--group", "reader", "--from-beginning")


@contextmanager
def killed(port: int, folder: Path) -> Iterator[None]:
    """A server on a directory; at the end it is killed, and nothing says goodbye."""
    settings = ("--set", f"offsets.topic.num.partitions={OFFSETS_PARTITIONS}")
    options = ("--port", str(port), "--profile", "4.3", "--log-dir", folder)
    command = [*COMMAND, "serve", *options, *settings]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"{")
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL


def described(tools: Tools) -> list[tuple[str, ...]]:
    """Group, topic, partition, offset, end and lag of all that is committed; sorted."""
    rows = []
    for group_id in GROUPS:
        said = tools.run("groups", "--describe", "--group", group_id)
        rows += [line.split()[:6] for line in said.lines if line.startswith(f"{group_id} ")]
    return sorted(tuple(row) for row in rows)


def prepare(bootstrap: str, tools: Tools) -> None:
    """The topics, and records of one of them."""
    kafka.run_client("prepare", bootstrap)
    tools.run("topics", "--create", *TOPIC, "--partitions", "1")
    assert tools.run("produce", *TOPIC, text="".join(f"{line}\n" for line in LINES)).status == 0


def read(tools: Tools, count: int) -> tuple[str, ...]:
    """The next `count` lines, from where the group is."""
    said = tools.run("consume", *READER, "--max-messages", str(count))
    return tuple(line for line in said.lines if line.startswith("line"))


def test_commits_survive_a_kill_and_are_loaded_by_a_real_broker(tmp_path: Path) -> None:
    """A consumer's, an admin's and a transaction's offsets are described alike three times."""
    folder = tmp_path / "ours"
    port = kafka.free_ports()[0]
    with Tools(f"127.0.0.1:{port}") as tools:
        with killed(port, folder):
            prepare(f"127.0.0.1:{port}", tools)
            kafka.run_client("commit", f"127.0.0.1:{port}")
            assert read(tools, 60) == LINES[:60]
            before = described(tools)
        with killed(port, folder):
            assert described(tools) == before
            assert read(tools, 40) == LINES[60:]
            after = described(tools)
    assert ("reader", "lines", "0", "60", "100", "40") in before
    assert ("reader", "lines", "0", "100", "100", "0") in after
    assert len(after) == 6
    with kafka.Broker(tmp_path / "broker", PROPERTIES, kafka.TOOLS_VERSION) as broker:
        with Tools(broker.bootstrap) as tools:
            prepare(broker.bootstrap, tools)
        broker.stop()
        put_segments(folder, broker.data)
        broker.start()
        with Tools(broker.bootstrap) as tools:
            assert described(tools) == after


def put_segments(ours: Path, theirs: Path) -> None:
    """Give a broker our segments of the offsets topic, without indexes and checkpoints."""
    for partition in range(OFFSETS_PARTITIONS):
        name = f"__consumer_offsets-{partition}"
        for path in (theirs / name).glob("0*"):
            path.unlink()
        for path in (ours / name).glob("0*.log"):
            shutil.copy(path, theirs / name)
    (theirs / ".kafka_cleanshutdown").unlink()
