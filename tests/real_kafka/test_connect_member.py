"""A Connect worker of ours and real ones in one cluster: work, leadership, death, signatures."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.real_kafka.connect import (
    RealWorker,
    connect_jars,
    install_nap_connector,
    worker_properties,
)
from coordinator_sim_conformance.real_kafka.kafka import Broker, free_ports

pytestmark = pytest.mark.real_kafka

GROUP = "connect-cluster"
DELAY_MS = 8000
SESSION = {"session.timeout.ms": "3000", "heartbeat.interval.ms": "500"}
EXACTLY_ONCE = {
    "exactly.once.source.support": "enabled",
    "scheduled.rebalance.max.delay.ms": "1000",
}
DEADLINE_S = 45
ALL = {"a", "a-0", "b", "b-0", "sink", "sink-0", "sink-1"}
"""Three connectors and their four tasks."""


class OurWorker:
    """A worker of ours in a process of its own."""

    def __init__(
        self, folder: Path, bootstrap: str, name: str, properties: dict[str, str], *more: str
    ) -> None:
        self.port = free_ports()[0]
        self.url = f"http://127.0.0.1:{self.port}"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{name}.properties"
        settings = {**worker_properties(GROUP, self.port), **properties}
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = [sys.executable, "-m", "coordinator_sim", "member", "--connect", "--json"]
        options = ["--bootstrap", bootstrap, "--config", str(file)]
        self.story = folder / f"{name}.jsonl"
        with self.story.open("wb") as out:
            self.process = subprocess.Popen([*command, *options, *more], stdout=out, stderr=out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What it has told by now."""
        lines = self.story.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line[-1] == "}"]

    def told(self, kind: str) -> list[dict[str, Any]]:
        """The events of one kind."""
        return [event for event in self.events if event["event"] == kind]

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


class Cluster:
    """A broker, what runs on it, and the files that connectors read and write."""

    def __init__(self, folder: Path, broker: Broker) -> None:
        self.folder = folder
        self.broker = broker
        self.workers: list[RealWorker | OurWorker] = []
        self.written: list[str] = []
        self.properties = dict(SESSION)

    def real(self, name: str) -> RealWorker:
        """A real worker, started."""
        worker = RealWorker(self.folder / name, self.broker.bootstrap, GROUP, self.properties)
        self.workers.append(worker)
        worker.start()
        return worker

    def ours(self, name: str, *more: str) -> OurWorker:
        """A worker of ours, started and in the group."""
        worker = OurWorker(self.folder, self.broker.bootstrap, name, self.properties, *more)
        self.workers.append(worker)
        await_true(lambda: bool(worker.told("JOINED")), f"{name} joins")
        await_true(lambda: bool(worker.told("READY")), f"{name} is ready")
        return worker

    def close(self) -> None:
        """End everything."""
        for worker in self.workers:
            worker.kill()

    def write(self, file: str, *lines: str) -> None:
        """More lines of a source's file."""
        with (self.folder / file).open("a", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)
        self.written += lines

    def source(self, file: str) -> dict[str, str]:
        """A source that reads a file."""
        return {
            "connector.class": "FileStreamSource",
            "file": str(self.folder / file),
            "topic": "lines",
            "tasks.max": "1",
        }

    def sink(self) -> dict[str, str]:
        """A sink of two tasks that append to one file."""
        return {
            "connector.class": "FileStreamSink",
            "file": str(self.folder / "out.txt"),
            "topics": "lines",
            "tasks.max": "2",
            "consumer.override.session.timeout.ms": "3000",
            "consumer.override.heartbeat.interval.ms": "500",
        }

    def read(self) -> Counter[str]:
        """The lines that sinks have written."""
        out = self.folder / "out.txt"
        return Counter(out.read_text(encoding="utf-8").split() if out.exists() else ())


def await_true(condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Wait for something that takes a rebalance or two."""
    until_s = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < until_s, what
        time.sleep(0.1)


def create(worker: RealWorker | OurWorker, name: str, config: dict[str, str]) -> None:
    """Create a connector at a worker, whichever leads."""
    answers: list[int] = []

    def created() -> bool:
        answer = httpx.put(f"{worker.url}/connectors/{name}/config", json=config, timeout=60)
        answers.append(answer.status_code)
        return answer.status_code == httpx.codes.CREATED

    await_true(created, f"{name} is created: {answers}")


def placed(worker: RealWorker | OurWorker) -> dict[str, str]:
    """Where each connector and task is RUNNING, as this worker knows."""
    answer = httpx.get(f"{worker.url}/connectors?expand=status", timeout=60)
    if answer.status_code != httpx.codes.OK:
        return {}
    found = {}
    for name, entry in answer.json().items():
        status = entry["status"]
        rows = [(name, status["connector"])]
        rows += [(f"{name}-{task['id']}", task) for task in status["tasks"]]
        found |= {row: each["worker_id"] for row, each in rows if each["state"] == "RUNNING"}
    return found


def runs_on(asked: RealWorker | OurWorker, *workers: RealWorker | OurWorker) -> bool:
    """Whether everything runs, on all of these workers and no other."""
    where = placed(asked)
    ids = {f"127.0.0.1:{worker.port}" for worker in workers}
    return set(where) == ALL and set(where.values()) == ids


def refusals(worker: RealWorker | OurWorker) -> tuple[int, int]:
    """What a leader answers to task configurations that nobody signed, or with another key."""
    forged = {
        "X-Connect-Authorization": "c2lnbmF0dXJl",
        "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
    }
    url = f"{worker.url}/connectors/a/tasks"
    unsigned = httpx.post(url, json=[], timeout=60)
    return unsigned.status_code, httpx.post(url, json=[], headers=forged, timeout=60).status_code


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A broker without workers."""
    try:
        connect_jars()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    settings = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0"}
    with Broker(tmp_path / "broker", settings) as broker:
        running = Cluster(tmp_path, broker)
        try:
            yield running
        finally:
            running.close()


def test_a_worker_of_ours_works_follows_and_leads_beside_real_ones(cluster: Cluster) -> None:
    """Both get work from either leader; whoever dies, its work moves and no line is lost."""
    first = cluster.real("first")
    ours = cluster.ours("ours")
    check_both_get_work(cluster, first, ours)
    check_our_work_moves_after_the_delay(cluster, first, ours)
    ours = cluster.ours("again")
    await_true(lambda: runs_on(first, first, ours), "the real leader gives some work back")
    check_we_lead_when_the_leader_dies(cluster, first, ours)
    second = cluster.real("second")
    await_true(lambda: runs_on(ours, ours, second), "our leader gives a real worker work")
    check_a_real_worker_signs_for_our_leader(cluster, second, ours)
    check_real_work_moves_after_our_delay(cluster, second, ours)
    assert ours.process.poll() is None
    ours.process.send_signal(signal.SIGTERM)
    assert ours.process.wait(DEADLINE_S) == 0


def check_both_get_work(cluster: Cluster, real: RealWorker, ours: OurWorker) -> None:
    """Connectors made at either worker are divided among both by the real leader.

    A connector of ours hands its tasks to that leader, which accepts our signature alone.
    """
    cluster.write("a.txt", "a1", "a2")
    cluster.write("b.txt", "b1", "b2")
    create(ours, "a", cluster.source("a.txt"))
    create(real, "b", cluster.source("b.txt"))
    create(ours, "sink", cluster.sink())
    await_true(lambda: runs_on(ours, real, ours), "both have work")
    assert refusals(real) == (httpx.codes.BAD_REQUEST, httpx.codes.FORBIDDEN)
    assert f"127.0.0.1:{ours.port}" in {placed(ours)[name] for name in ("a", "b", "sink")}
    assert not any(event["is_leader"] for event in ours.told("JOINED"))
    await_true(lambda: set(cluster.read()) == set(cluster.written), "all lines arrive")


def check_our_work_moves_after_the_delay(
    cluster: Cluster, real: RealWorker, ours: OurWorker
) -> None:
    """A follower of ours that dies keeps its place for the scheduled delay."""
    killed_s = time.monotonic()
    ours.kill()
    await_true(lambda: runs_on(real, real), "the real worker has everything")
    assert time.monotonic() - killed_s > DELAY_MS / 1000
    cluster.write("a.txt", "a3")
    cluster.write("b.txt", "b3")
    await_true(lambda: set(cluster.read()) == set(cluster.written), "later lines arrive")


def check_we_lead_when_the_leader_dies(cluster: Cluster, real: RealWorker, ours: OurWorker) -> None:
    """A new leader knows nobody whose return is worth waiting for: no delay."""
    real.kill()
    await_true(lambda: runs_on(ours, ours), "our worker has everything")
    assert ours.told("JOINED")[-1]["is_leader"]
    assert not any(event["delay_ms"] for event in ours.told("GIVEN"))
    cluster.write("a.txt", "a4")
    cluster.write("b.txt", "b4")
    await_true(lambda: set(cluster.read()) == set(cluster.written), "later lines arrive")


def check_a_real_worker_signs_for_our_leader(
    cluster: Cluster, real: RealWorker, ours: OurWorker
) -> None:
    """One of two new connectors is the real worker's: its tasks come by a signed request.

    Both are made and deleted at the real worker, which forwards to us.
    """
    assert refusals(ours) == (httpx.codes.BAD_REQUEST, httpx.codes.FORBIDDEN)
    for name in ("c", "d"):
        create(real, name, {**cluster.source("a.txt"), "topic": "others"})
    await_true(lambda: {"c", "c-0", "d", "d-0"} <= set(placed(ours)), "both have their task")
    assert f"127.0.0.1:{real.port}" in {placed(ours)[name] for name in ("c", "d")}
    for name in ("c", "d"):
        deleted = httpx.delete(f"{real.url}/connectors/{name}", timeout=60)
        assert deleted.status_code == httpx.codes.NO_CONTENT
    await_true(lambda: runs_on(ours, ours, real), "the first three go on")


def check_real_work_moves_after_our_delay(
    cluster: Cluster, real: RealWorker, ours: OurWorker
) -> None:
    """Our leader waits for a lost follower's return, then hands its work out."""
    real.kill()
    await_true(lambda: runs_on(ours, ours), "our worker has everything again")
    delays = [event["delay_ms"] for event in ours.told("GIVEN")]
    assert DELAY_MS in delays
    cluster.write("a.txt", "a5")
    cluster.write("b.txt", "b5")
    await_true(lambda: set(cluster.read()) == set(cluster.written), "the last lines arrive")


def committed_lines(cluster: Cluster, count: int) -> Counter[str]:
    """The committed records of the topic, once there are so many or no more come."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.broker.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["lines"])
    found: Counter[str] = Counter()
    until_s = time.monotonic() + DEADLINE_S
    while found.total() < count and time.monotonic() < until_s:
        for message in consumer.consume(500, 0.2):
            value = message.value()
            if message.error() is None and value is not None:
                found[value.decode() if isinstance(value, bytes) else value] += 1
    consumer.close()
    return found


def test_exactly_once_sources_move_between_ours_and_a_real_worker(cluster: Cluster) -> None:
    """The task that takes over fences the one before: no committed line twice, none lost.

    The leader, ours, writes its configurations in transactions, as does the real one after it.
    """
    cluster.properties |= EXACTLY_ONCE
    ours = cluster.ours("ours")
    real = cluster.real("real")
    cluster.write("a.txt", *(f"a{number}" for number in range(500)))
    cluster.write("b.txt", *(f"b{number}" for number in range(500)))
    create(ours, "a", cluster.source("a.txt"))
    create(real, "b", cluster.source("b.txt"))
    two = {"a", "a-0", "b", "b-0"}
    await_true(lambda: set(placed(real)) == two, "both run")
    assert len(set(placed(real).values())) == 2

    ours.kill()
    cluster.write("a.txt", *(f"a{number}" for number in range(500, 1000)))
    cluster.write("b.txt", *(f"b{number}" for number in range(500, 1000)))
    here = f"127.0.0.1:{real.port}"
    await_true(lambda: placed(real) == dict.fromkeys(two, here), "the real worker has all")
    again = cluster.ours("again")
    await_true(lambda: len(set(placed(again).values())) == 2, "some of it comes back")
    cluster.write("a.txt", "last-a")
    cluster.write("b.txt", "last-b")

    assert committed_lines(cluster, len(cluster.written)) == Counter(cluster.written)


def states(worker: RealWorker | OurWorker) -> dict[str, tuple[str, str, str]]:
    """State, worker and trace of each connector and task."""
    answer = httpx.get(f"{worker.url}/connectors?expand=status", timeout=60)
    if answer.status_code != httpx.codes.OK:
        return {}
    found = {}
    for name, entry in answer.json().items():
        status = entry["status"]
        rows = [(name, status["connector"])]
        rows += [(f"{name}-{task['id']}", task) for task in status["tasks"]]
        for row, each in rows:
            found[row] = (each["state"], each["worker_id"], each.get("trace", ""))
    return found


def test_a_class_that_only_a_real_worker_has_fails_on_ours_until_a_manifest_tells_of_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    """What the real leader gives us fails with a trace in the status topic, as in Java."""
    cluster.properties["scheduled.rebalance.max.delay.ms"] = "0"
    install_nap_connector(tmp_path / "real" / "plugins")
    real = cluster.real("real")
    ours = cluster.ours("ours")
    here = f"127.0.0.1:{ours.port}"
    for name in ("nap1", "nap2"):
        create(real, name, {"connector.class": "org.example.NapSourceConnector", "tasks.max": "1"})

    def settled() -> bool:
        seen = states(real)
        on_ours = [state for state, worker, _ in seen.values() if worker == here]
        return bool(on_ours) and set(on_ours) == {"FAILED"} and len(seen) >= 3

    await_true(settled, "what is ours fails")
    for state, worker, trace in states(real).values():
        assert state == ("FAILED" if worker == here else "RUNNING")
        assert ("ConnectException: Fail" in trace) == (worker == here)

    ours.process.send_signal(signal.SIGTERM)
    assert ours.process.wait(DEADLINE_S) == 0
    folder = tmp_path / "manifests"
    folder.mkdir()
    manifest = 'class = "org.example.NapSourceConnector"\ntype = "source"\nversion = "1"\n'
    (folder / "nap.toml").write_text(manifest, encoding="utf-8")
    again = cluster.ours("again", "--manifests", str(folder))
    everywhere = {f"127.0.0.1:{worker.port}" for worker in (real, again)}
    await_true(lambda: set(placed(real).values()) == everywhere, "it runs on both")
    await_true(lambda: set(placed(real)) == {"nap1", "nap1-0", "nap2", "nap2-0"}, "all of it")
