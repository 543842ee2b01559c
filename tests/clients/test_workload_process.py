"""Workloads of Trogdor as processes, at `coordinator-sim serve`; and our agent around them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any, Final

import pytest
from msgspec import Struct

from coordinator_sim.live.trogdor.host_platform import Allowed, HostPlatform
from coordinator_sim.live.trogdor.host_work import ExternalCommandWork, Program, work_on
from coordinator_sim.live.trogdor.loop_clock import LoopClock
from coordinator_sim.live.trogdor.workload_process import MODULE
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.agent import Agent, Progress, Work
from coordinator_sim.trogdor.contract import StartWork
from coordinator_sim.trogdor.messages import SPEC_CLASSES
from coordinator_sim.trogdor.specs import NoOpTaskSpec, TaskSpec
from coordinator_sim.trogdor.states import WorkerPhase, WorkerState
from coordinator_sim.trogdor.topology import topology_of
from coordinator_sim_pytest.server import ServedKafka
from tests.clients.librdkafka import produce, whole_topic

PACKAGE: Final = "org.apache.kafka.trogdor.workload."
PATIENCE_S: Final = 30.0
NOBODY: Final = "127.0.0.1:1"
"""A port that nobody listens on."""
TWO: Final = {"numPartitions": 2, "replicationFactor": 1}


def spec_of(name: str, bootstrap: str, **settings: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """A workload's spec as JSON."""
    return {"class": f"{PACKAGE}{name}Spec", "bootstrapServers": bootstrap, **settings}


class Said(Struct):
    """What a process said, and how it ended."""

    statuses: list[Any]
    logs: list[str]
    error: str | None
    code: int


@contextmanager
def started(spec: Any, **environment: str) -> Iterator[subprocess.Popen[bytes]]:  # noqa: ANN401 - any JSON
    """A process that has been told its workload; it is killed where nothing comes of it."""
    pipe = subprocess.PIPE
    command = (sys.executable, "-m", MODULE, "t")
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, env={**os.environ, **environment}
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"id": "t", "workload": spec}).encode() + b"\n")
        process.stdin.flush()
        watchdog = Timer(2 * PATIENCE_S, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def ended(process: subprocess.Popen[bytes]) -> Said:
    """What a process says until its end."""
    out, _ = process.communicate(timeout=PATIENCE_S)
    lines = [json.loads(line) for line in out.splitlines()]
    (error,) = [line["error"] for line in lines if "error" in line] or [None]
    return Said(
        [line["status"] for line in lines if "status" in line],
        [line["log"] for line in lines if "log" in line],
        error,
        process.returncode,
    )


def run(spec: Any, **environment: str) -> Said:  # noqa: ANN401 - any JSON
    """What a workload says until it is over by itself."""
    with started(spec, **environment) as process:
        return ended(process)


def await_line(process: subprocess.Popen[bytes], words: bytes) -> None:
    """Read until a line has some words."""
    assert process.stdout is not None
    for line in process.stdout:
        if words in line:
            return
    pytest.fail(f"{words!r} was not said")


# -- workloads by themselves -----------------------------------------------------------------------


def test_produce_bench_writes_all_its_records(kafka_server: ServedKafka) -> None:
    """To the partitions in turn, and tells how many and how fast."""
    where = {"activeTopics": {"bench": TWO}, "inactiveTopics": {"idle[1-2]": TWO}}
    spec = spec_of("ProduceBench", kafka_server.bootstrap, **where)
    said = run({**spec, "targetMessagesPerSec": 1_000, "maxMessages": 201})

    assert (said.error, said.code) == ("", 0)
    assert said.statuses[:2] == ["Creating 3 topic(s)", "Created 3 topic(s)"]
    final = said.statuses[-1]
    assert list(final) == [
        "totalSent",
        "averageLatencyMs",
        "p50LatencyMs",
        "p95LatencyMs",
        "p99LatencyMs",
        "transactionsCommitted",
    ]
    assert final["totalSent"] == 201
    values = whole_topic(kafka_server.bootstrap, "bench", 2, 201)
    assert values == [bytes(512)] * 201
    topics = {each["name"] for each in kafka_server.control.get("/v1/topics")}
    assert {"idle1", "idle2"} <= topics


def test_produce_bench_commits_its_transactions(kafka_server: ServedKafka) -> None:
    """Those that are full; the last is aborted when the producer is closed."""
    spec = spec_of(
        "ProduceBench",
        kafka_server.bootstrap,
        activeTopics={"tx": TWO},
        targetMessagesPerSec=1_000,
        maxMessages=25,
        transactionGenerator={"type": "uniform", "messagesPerTransaction": 10},
    )
    said = run(spec)

    assert said.error == ""
    assert said.statuses[-1]["transactionsCommitted"] == 2
    committed = {"isolation_level": "read_committed"}
    assert len(whole_topic(kafka_server.bootstrap, "tx", 2, 20, **committed)) == 20


def test_configurable_producer_writes_until_it_is_stopped(kafka_server: ServedKafka) -> None:
    """SIGTERM ends it without an error; the last status counts all that was written."""
    spec = spec_of(
        "ConfigurableProducer",
        kafka_server.bootstrap,
        activeTopic={"free": TWO},
        activePartition=1,
        keyGenerator={"type": "sequential", "size": 4},
        valueGenerator={"type": "constant", "size": 10},
        throughputGenerator={"type": "constant", "messagesPerWindow": 20, "windowSizeMs": 100},
        flushGenerator={"type": "constant", "messagesPerFlush": 5},
    )
    with started(spec) as process:
        await_line(process, b"Created")
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        said = ended(process)

    assert (said.error, said.code) == ("", 0)
    sent = said.statuses[-1]["totalSent"]
    assert sent >= 40
    topic = kafka_server.control.get("/v1/topics/free")
    assert [each["end_offset"] for each in topic["partitions"]] == [0, sent]


def test_round_trip_reads_what_it_writes(kafka_server: ServedKafka) -> None:
    """All of it; the group that it commits for is its own."""
    spec = spec_of(
        "RoundTripWorkload",
        kafka_server.bootstrap,
        activeTopics={"trip": TWO},
        targetMessagesPerSec=500,
        maxMessages=150,
    )
    said = run(spec)

    assert (said.error, said.code) == ("", 0)
    assert said.statuses[-1] == {"totalUniqueSent": 150, "totalReceived": 150}


def test_existing_topic_must_have_the_partitions(kafka_server: ServedKafka) -> None:
    """The error tells both numbers."""
    kafka_server.create_topic("there", 3)
    spec = spec_of("ProduceBench", kafka_server.bootstrap, activeTopics={"there": TWO})
    said = run(spec)

    assert said.error == (
        "Topic 'there' exists, but has 3 partitions, while requested  number of partitions is 2"
    )
    assert said.code == 1


def test_refused_topic_is_told_with_the_brokers_words(kafka_server: ServedKafka) -> None:
    """Three replicas are the default, and too many for one broker."""
    spec = spec_of("ProduceBench", kafka_server.bootstrap, activeTopics={"new": {}})
    said = run(spec)

    assert (said.error or "").startswith("Unable to replicate the partition 3 time(s)")
    assert said.statuses == ["Creating 1 topic(s)"]


@pytest.mark.parametrize("action", ["CONNECT", "FETCH_METADATA"])
def test_connections_are_opened(kafka_server: ServedKafka, action: str) -> None:
    """At the rate, until it is stopped; none fails."""
    spec = spec_of("ConnectionStress", kafka_server.bootstrap, action=action, numThreads=2)
    with started({**spec, "targetConnectionsPerSec": 40}) as process:
        await_line(process, b"totalConnections")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        said = ended(process)

    assert (said.error, said.code) == ("", 0)
    assert said.statuses[-1]["totalConnections"] >= 20
    assert said.statuses[-1]["totalFailedConnections"] == 0


def test_refused_connections_fail() -> None:
    """Each is counted."""
    with started(spec_of("ConnectionStress", NOBODY, targetConnectionsPerSec=40)) as process:
        await_line(process, b"totalConnections")
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        said = ended(process)

    status = said.statuses[-1]
    assert status["totalFailedConnections"] == status["totalConnections"] > 0


def test_sustained_clients_stay_connected(kafka_server: ServedKafka) -> None:
    """Two of each kind, used ten times a second."""
    kafka_server.create_topic("s", 3)
    kinds = ("producerConnectionCount", "consumerConnectionCount", "metadataConnectionCount")
    spec = spec_of(
        "SustainedConnection",
        kafka_server.bootstrap,
        topicName="s",
        numThreads=4,
        refreshRateMs=100,
        keyGenerator={"type": "null"},
        valueGenerator={"type": "constant", "size": 3},
        **dict.fromkeys(kinds, 2),
    )
    with started(spec) as process:
        await_line(process, b"totalProducerConnections")
        time.sleep(2)
        process.send_signal(signal.SIGTERM)
        said = ended(process)

    *counts, updated_ms = said.statuses[-1].values()
    assert counts == [2, 0, 2, 0, 2, 0, 0]
    assert abs(updated_ms - time.time() * 1_000) < 30_000
    topic = kafka_server.control.get("/v1/topics/s")
    assert sum(each["end_offset"] for each in topic["partitions"]) >= 10


def test_stopped_consumers_leave_their_group_as_kafkas_do(kafka_server: ServedKafka) -> None:
    """The first leaves; the second is evicted later."""
    kafka_server.create_topic("c", 2)
    spec = spec_of(
        "ConsumeBench",
        kafka_server.bootstrap,
        activeTopics=["c"],
        consumerGroup="g",
        threadsPerWorker=2,
        maxMessages=1_000_000,
        consumerConf={"session.timeout.ms": "60000", "max.poll.records": "10"},
    )
    with started(spec) as process:
        kafka_server.wait_for_group("g", members=2)
        process.send_signal(signal.SIGTERM)
        said = ended(process)

    assert (said.error, said.code, said.statuses) == ("", 0, [])
    (left,) = kafka_server.group("g")["members"]
    assert left["client_id"] == "consumer.t-1"
    assert left["session_timeout_ms"] == 60_000
    assert left["rebalance_timeout_ms"] == 100_000


# -- the process -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (spec_of("ShareConsumeBench", NOBODY), "ShareConsumeBenchSpec is no workload that this"),
        (None, "the body is null"),
        ({"class": "nonsense"}, "class 'nonsense' is none of those known"),
        (
            spec_of(
                "ProduceBench", NOBODY, activeTopics={"t": TWO}, commonClientConf={"foo.bar": "1"}
            ),
            'No such configuration property: "foo.bar"',
        ),
        (
            spec_of("ConnectionStress", NOBODY, commonClientConf={"security.protocol": "SSL"}),
            "security.protocol is SSL: CONNECT opens plain connections only",
        ),
        (
            spec_of("ConnectionStress", "no.invalid:9092,noport"),
            "No resolvable bootstrap urls given in bootstrap.servers: 'no.invalid:9092,noport'",
        ),
    ],
)
def test_task_that_cannot_be_run_is_refused(spec: object, error: str) -> None:
    """With one line that says why."""
    said = run(spec)

    assert (said.error or "").startswith(error)
    assert said.code == 1


def test_line_that_is_no_task_is_refused() -> None:
    """By hand, somebody may write anything."""
    command = (sys.executable, "-m", MODULE)
    done = subprocess.run(command, input=b"[1]\n", capture_output=True, check=False)

    error = 'the first line is no {"id": TASK_ID, "workload": TASK_SPEC}'
    assert json.loads(done.stdout) == {"error": error}
    assert done.returncode == 1


def test_settings_without_meaning_are_logged_once(kafka_server: ServedKafka) -> None:
    """Not once for each client."""
    spec = spec_of(
        "RoundTripWorkload",
        kafka_server.bootstrap,
        activeTopics={"logged": TWO},
        targetMessagesPerSec=100,
        maxMessages=1,
        commonClientConf={"metrics.num.samples": "3"},
    )
    said = run(spec)

    assert said.error == ""
    assert said.logs == ["metrics.num.samples is left out: it means nothing to librdkafka"]


def test_process_without_confluent_kafka_names_what_to_install(tmp_path: Path) -> None:
    """The task fails with one line."""
    absent = "raise ModuleNotFoundError('no', name='confluent_kafka')"
    (tmp_path / "confluent_kafka.py").write_text(absent)
    said = run(spec_of("ProduceBench", NOBODY), PYTHONPATH=str(tmp_path))

    assert said.error == "a workload needs confluent_kafka: pip install 'confluent-kafka>=2.6'"
    assert said.code == 1


def test_process_that_is_not_heard_any_more_ends_well(kafka_server: ServedKafka) -> None:
    """Kafka's agent closes the pipes before it stops a command."""
    spec = spec_of("ProduceBench", kafka_server.bootstrap, activeTopics={"deaf": TWO})
    with started({**spec, "maxMessages": 1_000_000}) as process:
        await_line(process, b"Created")
        assert process.stdout is not None
        process.stdout.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_process_ends_with_the_one_that_started_it(
    kafka_server: ServedKafka, tmp_path: Path
) -> None:
    """A workload that lost its agent stops."""
    spec = spec_of("ProduceBench", kafka_server.bootstrap, activeTopics={"lost": TWO})
    line = json.dumps({"id": "t", "workload": {**spec, "maxMessages": 1_000_000}})
    (tmp_path / "line.json").write_text(f"{line}\n")
    out = tmp_path / "out"
    script = (
        f"{sys.executable} -m {MODULE} < line.json > out & until grep -q Created out; do :; done"
    )
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True, timeout=PATIENCE_S)

    deadline_s = time.monotonic() + PATIENCE_S
    while "totalSent" not in out.read_text():
        assert time.monotonic() < deadline_s, out.read_text()
        time.sleep(0.05)
    assert '{"error":""}' in out.read_text()


# -- under our agent -------------------------------------------------------------------------------


class OwnAgent:
    """An agent in this process; its clock is the wall's.

    Attributes:
        told: What the operator was told.
    """

    def __init__(self, work_of: Callable[[HostPlatform, StartWork, Progress], Work]) -> None:
        self.told: list[str] = []
        self.platform = HostPlatform("n", topology_of({"n": {}}), Allowed(), self.told.append)
        clock = LoopClock(asyncio.get_running_loop())
        self.agent = Agent(clock, partial(work_of, self.platform))

    def create(self, worker_id: int, task_id: str, spec: dict[str, Any]) -> None:
        """Create a worker that starts now."""
        now = {"startMs": self.agent.now_ms, "durationMs": 60_000}
        read: TaskSpec = jackson.from_tree({**now, **spec}, TaskSpec)
        self.agent.create_worker(worker_id, task_id, read, lambda: None)

    def state(self, worker_id: int) -> WorkerState:
        """The state of a worker."""
        return self.agent.workers()[worker_id]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline_s, self.agent.workers()
            await asyncio.sleep(0.02)

    async def over(self, worker_id: int) -> WorkerState:
        """The state of a worker that is over."""
        await self.until(lambda: self.state(worker_id).state is WorkerPhase.DONE)
        return self.state(worker_id)


def with_agent(
    story: Callable[[OwnAgent], Awaitable[None]],
    work_of: Callable[[HostPlatform, StartWork, Progress], Work] = work_on,
) -> None:
    """Play a story with an agent."""

    async def play() -> None:
        await story(OwnAgent(work_of))

    asyncio.run(play())


def endless(bootstrap: str, **settings: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """A ProduceBench that goes on for hours."""
    spec = spec_of("ProduceBench", bootstrap, activeTopics={"long": TWO}, maxMessages=1_000_000)
    return {**spec, **settings}


def test_workload_that_its_duration_ends_has_succeeded(kafka_server: ServedKafka) -> None:
    """Its last status is that of its end; the exit code does not count."""

    async def story(own: OwnAgent) -> None:
        own.create(1, "t", endless(kafka_server.bootstrap, durationMs=2_500))
        state = await own.over(1)

        assert state.error == ""
        assert state.status["totalSent"] > 0
        assert own.platform.processes == {}

    with_agent(story)


def test_workload_is_over_by_itself(kafka_server: ServedKafka) -> None:
    """With its own error or none; log lines go to the operator."""
    produce(kafka_server.bootstrap, "ended", [b"v"])

    async def story(own: OwnAgent) -> None:
        conf = {"commonClientConf": {"key.serializer": "x"}}
        own.create(1, "good", endless(kafka_server.bootstrap, maxMessages=5, **conf))
        own.create(2, "bad", endless(kafka_server.bootstrap, activeTopics={"ended": TWO}))
        good, bad = await own.over(1), await own.over(2)

        assert (good.error, good.status["totalSent"]) == ("", 5)
        assert (bad.error or "").startswith("Topic 'ended' exists, but has 1 partitions")
        assert own.told == ["good: key.serializer is left out: it means nothing to librdkafka"]

    with_agent(story)


def test_workload_that_dies_has_failed(kafka_server: ServedKafka) -> None:
    """Somebody else's SIGKILL is an error."""

    async def story(own: OwnAgent) -> None:
        own.create(1, "t", endless(kafka_server.bootstrap))
        await own.until(lambda: own.state(1).status == "Created 1 topic(s)")
        (pid,) = own.platform.processes
        os.kill(pid, signal.SIGKILL)

        assert (await own.over(1)).error == "exited with return code 137"

    with_agent(story)


def test_process_stop_finds_a_workload(kafka_server: ServedKafka) -> None:
    """By the task's id or the class in its command line; it goes on afterwards."""
    fault = "org.apache.kafka.trogdor.fault.ProcessStopFaultSpec"

    def is_stopped(pid: int) -> bool:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    async def story(own: OwnAgent) -> None:
        own.create(1, "victim", endless(kafka_server.bootstrap))
        await own.until(lambda: own.state(1).status == "Created 1 topic(s)")
        ((pid, line),) = own.platform.processes.items()
        assert line.endswith(f"victim {PACKAGE}ProduceBenchSpec")
        named = {"nodeNames": ["n"], "javaProcessName": "victim"}
        own.create(2, "stopper", {"class": fault, **named})
        await own.until(lambda: is_stopped(pid))
        own.agent.stop_worker(2)
        await own.until(lambda: not is_stopped(pid))
        own.agent.stop_worker(1)

        assert (await own.over(1)).error == ""

    with_agent(story)


def test_program_that_does_not_stop_is_killed() -> None:
    """For a worker that is an error of its stop; its exit code is none."""

    def deaf(platform: HostPlatform, start: StartWork, progress: Progress) -> Work:
        script = "trap '' TERM; echo '{\"status\": \"deaf\"}'; while :; do sleep 0.1; done"
        command = ("sh", "-c", script)
        program = Program(command=command, workload=None, grace_ms=200, is_worker=True)
        return ExternalCommandWork(platform, start.task_id, program, progress)

    async def story(own: OwnAgent) -> None:
        own.create(1, "t", {"class": str(NoOpTaskSpec.__struct_config__.tag)})
        await own.until(lambda: own.state(1).status == "deaf")
        own.agent.stop_worker(1)

        assert (await own.over(1)).error == "killed: it had not stopped 200 ms after SIGTERM"

    with_agent(story, deaf)


def test_share_groups_are_not_consumed_here() -> None:
    """The agent says so."""
    assert f"{PACKAGE}ShareConsumeBenchSpec" in SPEC_CLASSES

    async def story(own: OwnAgent) -> None:
        own.create(1, "t", spec_of("ShareConsumeBench", NOBODY))
        state = await own.over(1)
        assert (state.error or "").endswith("ShareConsumeBenchSpec is not run by this agent")

    with_agent(story)
