"""A worker's Kafka clients at the simulated network: writes, reads, failures, fencing."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.connect import effects
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, Profile, profile_named
from coordinator_sim.log.counting_store import CountingStore
from coordinator_sim.log.format.counted_batches import counted_batches
from coordinator_sim.log.format.segments import EncodedBatch
from coordinator_sim.sim.brokers import ClusterDriver
from coordinator_sim.sim.data_plane import DataPlane
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.internal_topics import create_internal_topics, internal_topic_names
from coordinator_sim.sim.network import Network
from coordinator_sim.sim.scenario import (
    AddConnector,
    ChangeTaskCount,
    Choices,
    ConstantLatency,
    WorkerSpec,
)
from coordinator_sim.sim.scenario.world import ConnectGroupSpec, InternalTopicsSpec, TopicCosts
from coordinator_sim.sim.topic_logs import TopicLogs
from coordinator_sim.sim.world import World, create_topic
from coordinator_sim.trace.recorder import MemoryRecorder, NullRecorder
from coordinator_sim.trace.start_up import Phase, start_ups
from tests.simulated import events_of, scenario_of

COMPACT = {"cleanup.policy": "compact"}
Answered = tuple[int, object, str | None]


class Bench:
    """Two brokers, one worker's clients, a constant latency of half a millisecond."""

    def __init__(
        self, brokers: int = 2, costs: TopicCosts | None = None, profile: Profile = DEFAULT_PROFILE
    ) -> None:
        self.environment = Environment()
        choices = Choices(0)
        recorder = NullRecorder()
        network = Network(self.environment, ConstantLatency(), choices)
        cluster = Cluster(
            ClusterSettings(
                profile=profile,
                broker_ids=tuple(range(1, brokers + 1)),
                coordinator=CoordinatorConfig(offsets_topic_num_partitions=1),
                auto_create_topics=False,
                load_ms=10,
            ),
            endpoint=lambda broker_id, _: Endpoint(f"broker-{broker_id}", 9092),
            new_store=lambda *_: CountingStore(),
        )
        cluster.topics.create_asked_for(OFFSETS_TOPIC, Instants(0, 0))
        self.world = World(
            self.environment,
            network,
            cluster=cluster,
            choices=choices,
            recorder=recorder,
            topic_logs=TopicLogs(()),
        )
        self.brokers = ClusterDriver(
            cluster,
            environment=self.environment,
            network=network,
            recorder=recorder,
            failover_ms=2_000,
            choices=choices,
        )
        self.answers: list[Answered] = []
        self.fetched: list[tuple[int, effects.Fetched]] = []
        self.plane = self.new_plane("w1", costs or TopicCosts(linger_ms=0, fetch_us=0))

    def new_plane(self, worker: str, costs: TopicCosts) -> DataPlane:
        """The clients of another worker."""
        return DataPlane(
            self.world,
            worker,
            costs=costs,
            once_sent=("status",),
            answer=lambda token, value, error: self.answers.append((token, value, error)),
            fetched=lambda fetched: self.fetched.append((self.environment.now_us, fetched)),
        )

    def run(self, ms: int) -> list[Answered]:
        """Let time pass; the answers meanwhile."""
        self.answers.clear()
        self.environment.run_until(self.environment.now_us + ms * 1_000)
        return list(self.answers)

    def topic(self, name: str, partitions: int = 1) -> None:
        """Have a topic."""
        create_topic(self.world.cluster, name, partitions, self.world.now, COMPACT)

    def values(self) -> list[bytes | None]:
        """The values read so far."""
        return [
            record.value
            for _, fetched in self.fetched
            for record in fetched.records
            if not isinstance(record, effects.RecordRun)
        ]


def put(token: int, value: bytes, topic: str = "t") -> effects.Produce:
    """A write."""
    return effects.Produce(token=token, topic=topic, key=b"k", value=value)


def test_admin_calls_take_a_connection_and_a_round_trip() -> None:
    """Two latencies to connect, two to ask; later calls only to ask."""
    bench = Bench()
    bench.topic("t", 3)
    assert bench.plane.carry_out(effects.DescribeCluster(1))
    assert bench.run(2) == [(1, "4L6g3nShT-eMCtK--X86sw", None)]
    for effect in (
        effects.DescribeTopic(2, "t"),
        effects.DescribeTopic(3, "none"),
        effects.DescribeTopicConfig(4, "t", "cleanup.policy"),
        effects.DescribeTopicConfig(5, "none", "cleanup.policy"),
        effects.ListEndOffsets(6, "t"),
    ):
        bench.plane.carry_out(effect)
    answers = {token: value for token, value, _ in bench.run(3)}
    assert answers == {2: 3, 3: 0, 4: "compact", 5: "", 6: {0: 0, 1: 0, 2: 0}}
    assert not bench.plane.carry_out(effects.Died("no affair of topics"))


def test_a_topic_is_created_once_and_only_with_brokers_enough() -> None:
    """The second creation finds it."""
    bench = Bench()
    for token, replicas in ((1, 2), (2, 2), (3, 3)):
        name = "t" if token < 3 else "other"
        bench.plane.carry_out(
            effects.CreateTopic(
                token=token, topic=name, partitions=1, replication_factor=replicas, configs=COMPACT
            )
        )
        bench.run(3)
        if token < 3:
            assert bench.answers == [(token, token == 1, None)]
    assert bench.answers == [(3, None, "InvalidReplicationFactorException")]


def test_what_is_written_is_read_by_everyone_in_order() -> None:
    """A reader that waits at the end hears of a record one latency after it was written."""
    bench = Bench()
    bench.topic("t")
    bench.plane.carry_out(effects.StartReading("t"))
    bench.run(10)
    for token in (1, 2, 3):
        bench.plane.carry_out(put(token, b"%d" % token))
    started_us = bench.environment.now_us
    answers = bench.run(20)
    assert [(token, value) for token, value, _ in answers] == [(1, 0), (2, 1), (3, 2)]
    assert bench.values() == [b"1", b"2", b"3"]
    assert bench.fetched[0][0] - started_us == 2_000
    assert bench.fetched[-1][1].positions == {0: 3}
    bench.plane.carry_out(effects.StopReading("t"))
    bench.plane.carry_out(put(4, b"4"))
    bench.run(10)
    assert len(bench.values()) == 3


def test_producers_linger() -> None:
    """Records of five milliseconds leave in one request."""
    bench = Bench(costs=TopicCosts(linger_ms=5, fetch_us=0))
    bench.topic("t")
    bench.plane.carry_out(put(1, b"1"))
    bench.run(3)
    bench.plane.carry_out(put(2, b"2"))
    assert bench.run(3) == []
    assert [answer[0] for answer in bench.run(2)] == [1, 2]


def test_a_dead_leader_is_waited_for() -> None:
    """The producer of configurations tries until there is another leader; so does the reader."""
    bench = Bench()
    bench.topic("t")
    bench.plane.carry_out(effects.StartReading("t"))
    bench.plane.carry_out(put(1, b"1"))
    bench.run(10)
    bench.brokers.crash(1, 60_000)
    bench.run(10)
    bench.plane.carry_out(put(2, b"2"))
    assert bench.run(1_900) == []
    assert bench.run(2_000) == [(2, 1, None)]
    assert bench.values() == [b"1", b"2"]


def test_a_status_is_sent_once() -> None:
    """Without retries a lost request is a failure, which the store may mend."""
    bench = Bench(brokers=1)
    bench.topic("status")
    bench.plane.carry_out(put(1, b"1", "status"))
    bench.run(10)
    bench.plane.carry_out(put(2, b"2", "status"))
    bench.environment.run_until(bench.environment.now_us + 300)
    bench.brokers.crash(1, 5_000)
    assert bench.run(4_000) == [(2, None, "NetworkException")]
    bench.plane.carry_out(put(3, b"3", "status"))
    assert bench.run(4_000) == [(3, 1, None)]


def test_a_broker_that_never_comes_back_is_a_timeout() -> None:
    """Two minutes for a status, one for an admin call; configurations wait for ever."""
    bench = Bench(brokers=1)
    for topic in ("status", "t"):
        bench.topic(topic)
    bench.brokers.crash(1, 10_000_000)
    bench.plane.carry_out(put(1, b"1", "status"))
    bench.plane.carry_out(put(2, b"1"))
    bench.plane.carry_out(effects.ListEndOffsets(3, "t"))
    bench.plane.carry_out(effects.DescribeCluster(4))
    bench.plane.carry_out(effects.InitTransactions(5, "x"))
    assert sorted(bench.run(61_000)) == [
        *((3, None, "TimeoutException"), (4, None, "TimeoutException")),
        (5, None, "TimeoutException"),
    ]
    assert bench.run(61_000) == [(1, None, "TimeoutException")]


def test_a_cut_delays_and_a_healed_one_loses_nothing() -> None:
    """What was lost is sent again once the connection is reset."""
    bench = Bench(brokers=1)
    bench.topic("t")
    bench.plane.carry_out(effects.StartReading("t"))
    bench.plane.carry_out(put(1, b"1"))
    bench.run(10)
    bench.world.network.cut("w1", None)
    bench.plane.carry_out(put(2, b"2"))
    assert bench.run(5_000) == []
    bench.world.network.heal("w1", None)
    assert [answer[0] for answer in bench.run(1_000)] == [2]
    assert bench.values() == [b"1", b"2"]


def test_a_new_leader_fences_the_old_one() -> None:
    """Whoever initialises the transactional id last is the one that may write."""
    bench = Bench()
    bench.topic("t")
    other = bench.new_plane("w2", TopicCosts(linger_ms=0, fetch_us=0))

    def write(token: int) -> effects.ProduceInTransaction:
        return effects.ProduceInTransaction(
            token=token, transactional_id="x", topic="t", records=((b"a", b"1"), (b"b", None))
        )

    bench.plane.carry_out(effects.StartReading("t", read_committed=True))
    bench.plane.carry_out(effects.InitTransactions(1, "x"))
    assert bench.run(200) == [(1, None, None)]
    bench.plane.carry_out(write(2))
    assert bench.run(20) == [(2, None, None)]
    assert bench.values() == [b"1", None]
    other.carry_out(effects.InitTransactions(3, "x"))
    bench.run(20)
    bench.plane.carry_out(write(4))
    assert bench.run(20) == [(4, None, "InvalidProducerEpochException")]
    bench.plane.carry_out(effects.CloseProducer("x"))
    bench.plane.carry_out(effects.FenceProducers(5, ("x", "y")))
    assert bench.run(20) == [(5, None, None)]
    other.carry_out(write(6))
    assert bench.run(20) == [(6, None, "InvalidProducerEpochException")]


@pytest.mark.parametrize("profile", ["2.8", "3.9", DEFAULT_PROFILE.name])
def test_transactions_follow_each_other_in_every_release(profile: str) -> None:
    """Up to 3.9 partitions are added by a request; since 4.0 each transaction has an epoch."""
    bench = Bench(profile=profile_named(profile))
    bench.topic("t")
    bench.plane.carry_out(effects.StartReading("t", read_committed=True))
    bench.plane.carry_out(effects.InitTransactions(1, "x"))
    bench.run(200)
    large = tuple((b"%d" % number, b"v" * 9_000) for number in range(200))
    for token, records in ((2, large), (3, large), (4, ((b"a", b"last"),))):
        bench.plane.carry_out(
            effects.ProduceInTransaction(
                token=token, transactional_id="x", topic="t", records=records
            )
        )
        assert bench.run(1_000) == [(token, None, None)]
    assert len(bench.values()) == 401
    assert bench.values()[-1] == b"last"
    log = bench.world.cluster.logs.log_of("t", 0)
    assert log is not None
    (producer,) = log.producers()
    assert producer.producer_epoch == (3 if bench.world.adds_partitions else 0)


def test_an_open_transaction_is_aborted_by_the_next_of_its_id() -> None:
    """The dead leader's records never come to readers of committed ones."""
    bench = Bench(brokers=1)
    bench.topic("t")
    bench.plane.carry_out(effects.InitTransactions(1, "x"))
    bench.run(200)
    bench.plane.carry_out(
        effects.ProduceInTransaction(
            token=2, transactional_id="x", topic="t", records=((b"a", b"half"),)
        )
    )
    # The record is written half a millisecond later; the end is asked for after another half.
    bench.environment.run_until(bench.environment.now_us + 700)
    bench.plane.kill()
    other = bench.new_plane("w2", TopicCosts(linger_ms=0, fetch_us=0))
    other.carry_out(effects.StartReading("t", read_committed=True))
    bench.run(20)
    assert bench.values() == []
    other.carry_out(effects.InitTransactions(3, "x"))
    assert bench.run(200) == [(3, None, None)]
    other.carry_out(
        effects.ProduceInTransaction(
            token=4, transactional_id="x", topic="t", records=((b"a", b"whole"),)
        )
    )
    bench.run(20)
    assert bench.values() == [b"whole"]


def test_a_producer_closed_in_a_frozen_process_has_a_successor() -> None:
    """The close is of the producer there was, not of the next one of its transactional id."""
    bench = Bench(brokers=1)
    bench.topic("t")
    bench.plane.carry_out(effects.InitTransactions(1, "x"))
    bench.run(200)
    bench.plane.pause()
    bench.plane.carry_out(effects.CloseProducer("x"))
    bench.plane.carry_out(effects.InitTransactions(2, "x"))
    bench.plane.resume()
    assert bench.run(20) == [(2, None, None)]
    bench.plane.carry_out(
        effects.ProduceInTransaction(
            token=3, transactional_id="x", topic="t", records=((b"a", b"1"),)
        )
    )
    assert bench.run(20) == [(3, None, None)]


def test_a_frozen_process_hears_everything_afterwards() -> None:
    """What the network brought meanwhile is handled at the end, and then what was asked."""
    bench = Bench()
    bench.topic("t")
    bench.plane.carry_out(effects.StartReading("t"))
    bench.run(10)
    bench.plane.pause()
    bench.plane.pause()
    other = bench.new_plane("w2", TopicCosts(linger_ms=0, fetch_us=0))
    other.carry_out(put(1, b"1"))
    bench.run(5_000)
    assert bench.values() == []
    bench.plane.resume()
    assert bench.values() == [b"1"]


def test_a_killed_process_hears_nothing() -> None:
    """Its connections are closed."""
    bench = Bench()
    bench.topic("t")
    bench.plane.carry_out(effects.StartReading("t"))
    bench.plane.carry_out(put(1, b"1"))
    bench.plane.kill()
    bench.plane.carry_out(put(2, b"2"))
    assert (bench.run(5_000), bench.values()) == ([], [])


def test_the_trace_tells_how_long_a_topic_was_read() -> None:
    """Once its log says that it has read to the end; without a group nothing is told."""
    bench = Bench()
    recorder = MemoryRecorder()
    bench.world.recorder = recorder
    bench.topic("t")
    plane = DataPlane(
        bench.world,
        "w1",
        costs=TopicCosts(),
        once_sent=(),
        answer=lambda _token, _value, _error: None,
        fetched=lambda _fetched: None,
        group_id="g",
    )
    for each in (plane, bench.plane):
        each.carry_out(effects.StartReading("t"))
        bench.run(7)
        assert each.carry_out(effects.ReadToEnd("t"))
    (event,) = recorder.events
    assert event.reason_text == "read to its end"
    assert event.attrs == {"phase": "reading", "topic": "t", "records": "0", "took_ms": "7"}


def group(**spec: object) -> ConnectGroupSpec:
    """A cluster with internal topics of that kind."""
    topics = InternalTopicsSpec(**spec)  # type: ignore[arg-type] # the caller names its fields
    return ConnectGroupSpec(
        group_id="g", workers=(), connectors={"a": 1, "b": 2}, internal_topics=topics
    )


def read_all(bench: Bench, topic: str) -> tuple[int, int]:
    """Microseconds until the topic was read to its end, and the records read."""
    started_us = bench.environment.now_us
    bench.plane.carry_out(effects.StartReading(topic))
    bench.run(600_000)
    return bench.fetched[-1][0] - started_us, bench.plane.records_read(topic)


def test_the_topics_of_a_cluster_are_there_from_the_start() -> None:
    """Key; connector, tasks, commit for each connector; offsets and statuses as counted."""
    bench = Bench()
    create_internal_topics(bench.world, group(offset_records=1_001))
    create_internal_topics(bench.world, group(exist=False))
    names = internal_topic_names(group())
    assert names.settings()["config.storage.topic"] == "g-configs"
    assert read_all(bench, "g-offsets")[1] == 1_001
    bench.fetched.clear()
    read_all(bench, "g-configs")
    assert len(bench.values()) == 1 + 3 + 4


@pytest.mark.parametrize(
    ("costs", "low_ms", "high_ms"),
    [
        ({"record_ns": 10_000}, 10_000, 10_500),
        ({"bytes_per_s": 10**7}, 11_000, 11_500),
        ({"work_bytes_per_s": 10**7}, 11_000, 11_500),
        ({"fetch_us": 100_000}, 400, 12_000),
    ],
    ids=["records", "bytes", "work on bytes", "fetches"],
)
def test_reading_costs_records_bytes_and_fetches(
    costs: dict[str, int], low_ms: int, high_ms: int
) -> None:
    """A million records of 100 bytes, each cost alone."""
    free = {"record_ns": 0, "bytes_per_s": 10**12, "work_bytes_per_s": 10**12, "fetch_us": 0}
    bench = Bench(brokers=1, costs=TopicCosts(**{**free, **costs}))
    spec = group(offset_records=1_000_000, offset_end=3_000_000)
    create_internal_topics(bench.world, spec)
    took_us, count = read_all(bench, "g-offsets")
    assert count == 1_000_000
    assert low_ms <= took_us // 1_000 <= high_ms


def test_a_partition_at_its_end_holds_up_its_leader_for_half_a_second() -> None:
    """As in Java: no fetch of other partitions until the long poll is over."""
    costs = TopicCosts(record_ns=1_000_000, partition_fetch_bytes=1_100, fetch_us=0)
    bench = Bench(brokers=1, costs=costs)
    bench.topic("t", 2)
    log = bench.world.cluster.logs.log_of("t", 0)
    assert log is not None
    (counted,) = counted_batches(0, 20, span=20, value_bytes=100)
    log.append_encoded(EncodedBatch(0, counted.next_offset, counted.header()), now_ms=0)
    took_us, count = read_all(bench, "t")
    assert count == 20
    assert took_us > 500_000


def test_the_first_worker_creates_topics_that_do_not_exist() -> None:
    """And finds a connector that is added later, as any other worker does."""
    scenario = scenario_of(
        name="first-start",
        duration_ms=60_000,
        brokers=3,
        groups=(
            ConnectGroupSpec(
                group_id="g",
                workers=(WorkerSpec(name="w1"), WorkerSpec(name="w2")),
                internal_topics=InternalTopicsSpec(exist=False),
            ),
        ),
        happenings=(AddConnector(at_ms=20_000, group_id="g", connector="c", tasks=2),),
    )
    started = " ".join(event.attrs.get("resources", "") for event in events_of(scenario))
    assert sorted(started.split()) == ["c:c", "t:c-0", "t:c-1"]


@pytest.mark.parametrize(("every_ms", "records"), [(None, 22), (30_000, 6)])
def test_a_late_worker_reads_what_compaction_left(every_ms: int | None, records: int) -> None:
    """Of each key the last record; its tasks and those of the others are the same."""
    changes = [
        ChangeTaskCount(at_ms=10_000 + 3_000 * turn, group_id="g", connector="c", tasks=tasks)
        for turn, tasks in enumerate((1, 2, 3, 2))
    ]
    scenario = scenario_of(
        name="late",
        duration_ms=60_000,
        groups=(
            ConnectGroupSpec(
                group_id="g",
                workers=(WorkerSpec(name="w1"), WorkerSpec(name="w2", start_ms=40_000)),
                connectors={"c": 3},
                internal_topics=InternalTopicsSpec(compact_every_ms=every_ms),
            ),
        ),
        happenings=tuple(changes),
    )
    late = start_ups(events_of(scenario))[1]
    assert late.phases[3] == Phase("g-configs", late.phases[3].took_us, records)
    assert late.phases[-1].name == "join"
