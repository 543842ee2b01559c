"""Kafka's own console producer and consumer at `serve`."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka.kafka import TOOLS_VERSION, java_command
from tools.record_data_answers import OLDEST_VERSION

pytestmark = pytest.mark.real_kafka

COUNT = 10_000
PATIENCE_S = 60
CLIENTS = {
    "4.4": (TOOLS_VERSION, "org.apache.kafka.tools", "org.apache.kafka.tools.consumer"),
    "3.9": (TOOLS_VERSION, "org.apache.kafka.tools", "org.apache.kafka.tools.consumer"),
    "0.10.2": (OLDEST_VERSION, "kafka.tools", "kafka.tools"),
}
"""For each profile the release of the clients, and the packages of producer and consumer."""


@contextmanager
def served(profile: str, folder: Path) -> Iterator[str]:
    """The address of a server."""
    ready = folder / "ready"
    command = [sys.executable, "-m", "coordinator_sim", "serve", "--port", "0", "--no-control"]
    process = subprocess.Popen(
        [*command, "--profile", profile, "--ready-file", str(ready)], stdout=subprocess.DEVNULL
    )
    deadline_s = time.monotonic() + PATIENCE_S
    while not ready.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    try:
        yield str(json.loads(ready.read_text())["bootstrap"])
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


def ran(command: list[str], text: str = "") -> str:
    """What a program prints."""
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr[-1_000:]
    return done.stdout


@pytest.mark.parametrize("profile", CLIENTS)
def test_the_console_consumer_prints_what_the_producer_was_told(
    profile: str, tmp_path: Path
) -> None:
    """Each line once, in order."""
    version, producers, consumers = CLIENTS[profile]
    address = "--broker-list" if version == OLDEST_VERSION else "--bootstrap-server"
    text = "".join(f"{number}{'x' * (number % 50)}\n" for number in range(COUNT))
    with served(profile, tmp_path) as bootstrap:
        producer = f"{producers}.ConsoleProducer"
        ran(java_command(version, producer, address, bootstrap, "--topic", "lines"), text)
        options = ["--topic", "lines", "--from-beginning", "--max-messages", str(COUNT)]
        consumer = java_command(
            version, f"{consumers}.ConsoleConsumer", "--bootstrap-server", bootstrap, *options
        )
        assert ran(consumer) == text
