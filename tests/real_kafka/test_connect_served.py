"""Three real Connect workers on our cluster: connectors by REST, a death, exactly-once sources."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.real_kafka.connect import RealWorker, connect_jars
from tests.real_kafka.test_connect_member import await_true, create, placed
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.real_kafka

GROUP = "served-connect"
DELAY_MS = 3000
PROPERTIES = {
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": str(DELAY_MS),
}
EXACTLY_ONCE = {**PROPERTIES, "exactly.once.source.support": "enabled"}
SINK = {
    "connector.class": "FileStreamSink",
    "tasks.max": "2",
    "topics": "lines",
    "consumer.override.session.timeout.ms": "6000",
    "consumer.override.heartbeat.interval.ms": "500",
}
NO_DELAY = "group.initial.rebalance.delay.ms=0"
READ_S = 30


class Lines:
    """Files that sources read, and one that sinks write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[str] = []

    def source(self, name: str) -> dict[str, str]:
        """A source that reads a file of this name."""
        file = str(self.folder / name)
        return {
            "connector.class": "FileStreamSource",
            "file": file,
            "topic": "lines",
            "tasks.max": "1",
        }

    def write(self, name: str, first: int, count: int) -> None:
        """More numbered lines of a source's file."""
        lines = [f"{name}{number}" for number in range(first, first + count)]
        with (self.folder / name).open("a", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)
        self.written += lines

    @property
    def read(self) -> Counter[str]:
        """What sinks have written."""
        out = self.folder / "out.txt"
        return Counter(out.read_text(encoding="utf-8").split() if out.exists() else ())


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """A cluster of ours with a topic for lines."""
    try:
        connect_jars()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    settings = ("--brokers", "3", "--topics", "lines:4", "--set", NO_DELAY)
    with serving("--port", "0", *settings) as ready:
        yield ready["bootstrap"]


@contextmanager
def workers(
    folder: Path, bootstrap: str, properties: dict[str, str], *names: str
) -> Iterator[list[RealWorker]]:
    """Workers of one cluster, started; they are killed at the end."""
    made = [RealWorker(folder / name, bootstrap, GROUP, properties) for name in names]
    try:
        for worker in made:
            worker.start()
        yield made
    finally:
        for worker in made:
            worker.kill()


def everything(asked: RealWorker, workers: list[RealWorker], names: set[str]) -> bool:
    """Whether all of it runs, on all of these workers and no other."""
    where = placed(asked)
    ids = {f"127.0.0.1:{worker.port}" for worker in workers}
    return set(where) == names and set(where.values()) == ids


def test_three_workers_share_the_work_and_a_dead_ones_moves(tmp_path: Path, bootstrap: str) -> None:
    """The lines of two files arrive once each; after the scheduled delay two do the work."""
    lines = Lines(tmp_path)
    lines.write("a", 0, 300)
    lines.write("b", 0, 300)
    with workers(tmp_path, bootstrap, PROPERTIES, "one", "two", "three") as all_three:
        first, second, third = all_three
        create(first, "a", lines.source("a"))
        create(second, "b", lines.source("b"))
        create(third, "sink", {**SINK, "file": str(tmp_path / "out.txt")})
        names = {"a", "a-0", "b", "b-0", "sink", "sink-0", "sink-1"}
        await_true(lambda: everything(first, all_three, names), "all three have work")
        await_true(lambda: lines.read == Counter(lines.written), "all lines arrive, once each")
        await_true(lambda: is_committed(first, lines), "what was read is committed")
        killed_s = time.monotonic()
        third.kill()
        await_true(lambda: everything(first, [first, second], names), "two have everything")
        assert time.monotonic() - killed_s > DELAY_MS / 1000
        lines.write("a", 300, 200)
        lines.write("b", 300, 200)
        await_true(lambda: lines.read == Counter(lines.written), "later lines, once each")
        await_true(lambda: is_committed(first, lines), "they are committed")
        check_rest(first, second)


def is_committed(worker: RealWorker, lines: Lines) -> bool:
    """Whether each source has committed the end of its file, and the sink that of the topic."""
    found = {name: offsets_of(worker, name) for name in ("a", "b", "sink")}
    ends = {name: [(lines.folder / name).stat().st_size] for name in ("a", "b")}
    return {name: found[name] for name in ends} == ends and sum(found["sink"]) == len(lines.written)


def offsets_of(worker: RealWorker, name: str) -> list[int]:
    """Positions a connector has committed, as its REST API tells them."""
    answer = httpx.get(f"{worker.url}/connectors/{name}/offsets", timeout=60)
    rows = answer.json().get("offsets", []) if answer.is_success else []
    return [position for row in rows for position in row["offset"].values()]


def check_rest(first: RealWorker, second: RealWorker) -> None:
    """A sink stops, its offsets are reset through the group APIs, and it is deleted."""
    url = f"{second.url}/connectors/sink"
    assert httpx.put(f"{url}/stop", timeout=60).is_success
    await_true(lambda: not {"sink-0", "sink-1"} & set(placed(first)), "its tasks are gone")
    await_true(lambda: httpx.delete(f"{url}/offsets", timeout=60).is_success, "they are reset")
    assert offsets_of(first, "sink") == []
    assert httpx.delete(url, timeout=60).status_code == httpx.codes.NO_CONTENT
    await_true(lambda: set(placed(first)) == {"a", "a-0", "b", "b-0"}, "the sources go on")


def committed_lines(bootstrap: str, count: int) -> Counter[str]:
    """The committed records of the topic, once there are so many or no more come."""
    settings: dict[str, str | int] = {
        "bootstrap.servers": bootstrap,
        "group.id": "reader",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    consumer = Consumer(settings)
    consumer.subscribe(["lines"])
    found: Counter[str] = Counter()
    until_s = time.monotonic() + READ_S
    while found.total() < count and time.monotonic() < until_s:
        for message in consumer.consume(500, 0.5):
            value = message.value()
            if message.error() is None and value is not None:
                found[value.decode() if isinstance(value, bytes) else value] += 1
    consumer.close()
    return found


def test_exactly_once_sources_lose_and_repeat_nothing(tmp_path: Path, bootstrap: str) -> None:
    """The task that takes over fences the one that was killed, and goes on behind its last line."""
    lines = Lines(tmp_path)
    with workers(tmp_path, bootstrap, EXACTLY_ONCE, "one", "two") as (first, second):
        lines.write("a", 0, 400)
        lines.write("b", 0, 400)
        create(first, "a", lines.source("a"))
        create(second, "b", lines.source("b"))
        names = {"a", "a-0", "b", "b-0"}
        await_true(lambda: everything(first, [first, second], names), "both have work")
        lines.write("a", 400, 400)
        second.kill()
        lines.write("b", 400, 400)
        await_true(lambda: everything(first, [first], names), "one has everything")
        assert committed_lines(bootstrap, len(lines.written)) == Counter(lines.written)
