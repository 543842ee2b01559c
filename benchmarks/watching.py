"""What a watch costs, and what it adds to its broker: 2,000 groups, eight hours in minutes.

A real broker (Java and Maven are needed) has one member in each group, which commits a partition
once a minute and joins again twice an hour. The requests of eight hours are sent in as many minutes
as fit; minutes with and without a watch take turns. CPU is that of the processes, by the kernel.
"""

import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import Fields, request_frame
from coordinator_sim_conformance.real_kafka import kafka
from coordinator_sim_conformance.real_kafka.raw_client import RawClient

GROUPS: Final = 2_000
HOURS: Final = 8
MINUTES: Final = 6
"""Minutes into which the hours are compressed: three with a watch, three without."""
COMMITS_PER_HOUR: Final = 60
JOINS_PER_HOUR: Final = 2
CONNECTIONS: Final = 4
_PIPELINE: Final = 50
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_START_S: Final = 10
"""Of a minute with a watch, so long is its start."""
_COMMIT: Final = (ApiKey.OFFSET_COMMIT, 2)


class _Load(Thread):
    """Requests of some groups, over one connection, at a rate."""

    def __init__(self, bootstrap: str, groups: range) -> None:
        super().__init__(daemon=True)
        self._client = RawClient(bootstrap)
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._answers = self._socket.makefile("rb")
        self._groups = groups
        self._commits: dict[int, bytes] = {}
        self._members: dict[int, str] = {}
        self.is_over = False
        self.commits = self.joins = self.refused = 0

    def join_all(self) -> None:
        """Have a member join each group."""
        for number in self._groups:
            self._join(number)

    def run(self) -> None:
        """Send commits at their rate, and a join for every so many of them."""
        rate = len(self._groups) * COMMITS_PER_HOUR * HOURS / (MINUTES * 60)
        began_s = time.monotonic()
        numbers = list(self._groups)
        place = 0
        while not self.is_over:
            batch = [numbers[(place + step) % len(numbers)] for step in range(_PIPELINE)]
            place += _PIPELINE
            self._socket.sendall(b"".join(self._commits[number] for number in batch))
            for _ in batch:
                answer = self._answers.read(int.from_bytes(self._answers.read(4), "big"))
                self.refused += answer[-2:] != b"\0\0"
            self.commits += len(batch)
            while self.joins * COMMITS_PER_HOUR < self.commits * JOINS_PER_HOUR:
                self._join(numbers[self.joins % len(numbers)])
                self.joins += 1
            time.sleep(max(0.0, began_s + self.commits / rate - time.monotonic()))

    def _join(self, number: int) -> None:
        """Join, or join again; the commit of the new generation is made once."""
        group = f"group-{number}"
        asked: Fields = {
            "groupId": group,
            "sessionTimeoutMs": 1_800_000,
            "rebalanceTimeoutMs": 60_000,
            "memberId": self._members.get(number, ""),
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": b"\0\1\0\0\0\1\0\6orders\0\0\0\0"}],
        }
        joined = self._client.call(ApiKey.JOIN_GROUP, 3, asked)
        member, generation = joined["memberId"], joined["generationId"]
        self._members[number] = member
        own: Fields = {"groupId": group, "generationId": generation, "memberId": member}
        part = b"\0\1\0\0\0\1\0\6orders\0\0\0\1\0\0\0\0\xff\xff\xff\xff"
        parts = [{"memberId": member, "assignment": part}]
        self._client.call(ApiKey.SYNC_GROUP, 2, own | {"assignments": parts})
        place = {"partitionIndex": 0, "committedOffset": generation, "committedMetadata": ""}
        asked = {
            "groupId": group,
            "generationIdOrMemberEpoch": generation,
            "memberId": member,
            "retentionTimeMs": -1,
            "topics": [{"name": "orders", "partitions": [place]}],
        }
        api, version = _COMMIT
        header = RequestHeader(
            api_key=int(api), api_version=version, correlation_id=0, client_id="load"
        )
        frame = request_frame(header, asked)
        self._commits[number] = len(frame).to_bytes(4, "big") + frame


def _cpu_s(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _minute(broker: kafka.Broker, out: Path | None) -> dict[str, float]:
    """Shares of a core that the broker, and a watch that writes there, take in a minute."""
    watch = None
    if out is not None:
        command = ["watch", "--bootstrap", broker.bootstrap, "--from-end", "--out", str(out)]
        with (out.parent / "watch.log").open("ab") as log:
            watch = subprocess.Popen(
                [sys.executable, "-m", "coordinator_sim", *command], stdout=log, stderr=log
            )
    time.sleep(_START_S)
    pids = {"broker": broker.pid, "watch": None if watch is None else watch.pid}
    before = {name: _cpu_s(pid) for name, pid in pids.items() if pid is not None}
    began_s = time.monotonic()
    time.sleep(60 - _START_S)
    took_s = time.monotonic() - began_s
    found = {name: (_cpu_s(pids[name] or 0) - cpu_s) / took_s for name, cpu_s in before.items()}
    if watch is not None:
        found["memory"] = _memory_mb(watch.pid)
        watch.terminate()
        watch.wait()
    return found


def _begun(broker: kafka.Broker) -> list[_Load]:
    """Have a member in each group, and begin the load."""
    share = GROUPS // CONNECTIONS
    starts = range(0, GROUPS, share)
    loads = [_Load(broker.bootstrap, range(start, start + share)) for start in starts]
    for load in loads:
        load.join_all()
    for load in loads:
        load.start()
    return loads


def main() -> None:
    """Print each minute, and the ratio."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        settings = {"group.max.session.timeout.ms": "1800000", "num.partitions": "1"}
        with kafka.Broker(folder / "broker", settings) as broker:
            RawClient(broker.bootstrap).call(
                ApiKey.CREATE_TOPICS,
                4,
                {
                    "topics": [{"name": "orders", "numPartitions": 1, "replicationFactor": 1}],
                    "timeoutMs": 30_000,
                },
            )
            RawClient(broker.bootstrap).call(
                ApiKey.FIND_COORDINATOR, 2, {"key": "group-0", "keyType": 0}
            )
            time.sleep(_START_S)
            loads = _begun(broker)
            minutes: list[dict[str, Any]] = []
            for number in range(MINUTES):
                before = sum(load.commits for load in loads), sum(load.joins for load in loads)
                out = folder / "watch" if number % 2 else None
                found: dict[str, Any] = _minute(broker, out)
                after = sum(load.commits for load in loads), sum(load.joins for load in loads)
                found |= {"commits": after[0] - before[0], "joins": after[1] - before[1]}
                minutes.append(found)
                print({key: round(value, 3) for key, value in found.items()}, flush=True)
            for load in loads:
                load.is_over = True
            refused = sum(load.refused for load in loads)
            costs: dict[bool, list[float]] = {True: [], False: []}
            for each in minutes:
                costs["watch" in each].append(each["broker"] / each["commits"])
            ratio = statistics.median(costs[True]) / statistics.median(costs[False])
            print(f"CPU of the broker per commit, with the watch / without: {ratio:.2f}")
            print(f"refused commits: {refused}")
