"""A cluster for workloads: `coordinator-sim serve` as a process of this host."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

import httpx
import msgspec
from confluent_kafka import Producer

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.trogdor_cases.trogdor import Member, Topic

_START_S: Final = 60.0
_POLL_S: Final = 0.05
_FILLING_S: Final = 30.0
_SERVE: Final = (sys.executable, "-m", "coordinator_sim", "serve")
_NO_DELAY: Final = "group.initial.rebalance.delay.ms=0"


class ServedCluster:
    """The process.

    Args:
        topics: Topics to begin with.
        folder: For its ready line and what it says; it exists.

    Attributes:
        bootstrap: Where its broker listens.

    Raises:
        DataError: it does not start, or takes no records.
    """

    def __init__(self, topics: Mapping[str, Topic], folder: Path) -> None:
        ready = folder / "serve.json"
        named = ",".join(f"{name}:{topic.partitions}" for name, topic in topics.items())
        ports = ("--port", "0", "--control-port", "0")
        with (folder / "serve.log").open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                (*_SERVE, *ports, "--topics", named, "--set", _NO_DELAY, "--ready-file", ready),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        latest_s = time.monotonic() + _START_S
        while not ready.is_file():
            if self._process.poll() is not None or time.monotonic() > latest_s:
                self.close()
                raise DataError(f"the cluster does not start; see {folder / 'serve.log'}")
            time.sleep(_POLL_S)
        said = json.loads(ready.read_bytes())
        self.bootstrap: str = said["bootstrap"]
        self._control: str = said["control"]
        self._fill(topics)

    def members(self, group_id: str) -> list[Member]:
        """The members of a group, by client id; none of an unknown group."""
        url = f"{self._control}/v1/groups/{quote(group_id, safe='')}"
        answer = httpx.get(url, trust_env=False)
        found = answer.json().get("members", []) if answer.is_success else []
        members = msgspec.convert(found, list[Member])
        return sorted(members, key=lambda each: each.client_id)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _fill(self, topics: Mapping[str, Topic]) -> None:
        """Write the records of topics.

        Raises:
            DataError: they are not taken.
        """
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for name, topic in topics.items():
            for number in range(topic.records):
                producer.produce(name, f"record {number}".encode(), partition=0)
        if producer.flush(_FILLING_S):
            self.close()
            raise DataError(f"{self.bootstrap} takes no records")
