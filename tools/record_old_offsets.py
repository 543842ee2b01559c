"""Record real brokers' answers about offsets of version 0, and the nodes in their ZooKeeper.

    python -m tools.record_old_offsets

writes `tests/data/old_offsets/kafka-VERSION.jsonl`: a line for each question, and after them, for a
broker with a ZooKeeper, a line for each node that holds an offset.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.real_kafka.kafka import HERE, OLD_BROKER_VERSION, Broker, run_java
from coordinator_sim_conformance.real_kafka.old_offsets import answered
from coordinator_sim_conformance.real_kafka.raw_client import RawClient
from coordinator_sim_conformance.real_kafka.zookeeper_kafka import ZooKeeperBroker

FOLDER: Final = Path(__file__).parents[1] / "tests" / "data" / "old_offsets"
OLDEST_VERSION: Final = "0.10.2.2"
VERSIONS: Final = (OLDEST_VERSION, "2.8.2", OLD_BROKER_VERSION)
_DELETING: Final = {"delete.topic.enable": "true"}
NODE: Final = "NODE"
"""Prefix of the line of a node."""


def transcript(version: str) -> str:
    """Return all questions with a real broker's answers, and its stored offsets after them."""
    with tempfile.TemporaryDirectory() as folder:
        return "".join(f"{line}\n" for line in _lines(version, Path(folder)))


def _lines(version: str, folder: Path) -> Iterator[str]:
    if version == OLD_BROKER_VERSION:
        with Broker(folder, version=version) as newer:
            yield from _asked(newer.bootstrap)
        return
    with ZooKeeperBroker(folder, version, _DELETING) as broker:
        yield from _asked(broker.bootstrap)
        broker.stop()
        yield from _kept(version, broker.zookeeper)


def _asked(bootstrap: str) -> Iterator[str]:
    client = RawClient(bootstrap)
    yield from answered(client)
    client.close()


def _kept(version: str, zookeeper: str) -> Iterator[str]:
    done = run_java(version, str(HERE / "OffsetNodes.java"), zookeeper)
    if done.returncode:
        raise DataError(f"OffsetNodes: {done.stderr.strip()[-1000:]}")
    for line in done.stdout.split("\n"):
        path, tab, data = line.partition("\t")
        if tab:
            yield json.dumps([NODE, path, data], separators=(",", ":"))


def main() -> None:
    """Record all brokers."""
    FOLDER.mkdir(exist_ok=True)
    for version in VERSIONS:
        (FOLDER / f"kafka-{version}.jsonl").write_text(transcript(version), "utf-8")


if __name__ == "__main__":
    main()
