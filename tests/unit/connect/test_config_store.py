"""The config store: what records make of it, how it writes, who hears of what."""

import pytest
from msgspec import structs

from coordinator_sim.connect.effects import (
    CloseProducer,
    Fetched,
    InitTransactions,
    ListEndOffsets,
    Produce,
    ProduceInTransaction,
    RecordRun,
    TargetState,
)
from coordinator_sim.connect.exceptions import (
    ClientException,
    ConfigException,
    ConnectException,
    PrivilegedWriteException,
    TimeoutException,
)
from coordinator_sim.connect.stores.config_records import (
    RestartRequest,
    SessionKey,
    commit_value,
    properties_value,
    target_state_value,
)
from coordinator_sim.connect.stores.config_store import ConfigStore
from coordinator_sim.connect.stores.topic_log import InternalTopic
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim_conformance.client_cases.topic_bench import TopicBench

TOPIC = InternalTopic(name="configs", setting="config.storage.topic", purpose="configurations")
C = {"connector.class": "Source"}
T0, T1 = {"n": "0"}, {"n": "1"}
_BROKEN_KEY = b'{"key":"?","algorithm":"a","creation-timestamp":1}'


class Listener:
    """Notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def on_connector_config_remove(self, connector: str) -> None:
        """Note it."""
        self.heard.append(("removed", connector))

    def on_connector_config_update(self, connector: str) -> None:
        """Note it."""
        self.heard.append(("updated", connector))

    def on_task_config_update(self, tasks: tuple[ConnectorTaskId, ...]) -> None:
        """Note it."""
        self.heard.append(("tasks", *tasks))

    def on_connector_target_state_change(self, connector: str) -> None:
        """Note it."""
        self.heard.append(("target", connector))

    def on_session_key_update(self, key: SessionKey) -> None:
        """Note it."""
        self.heard.append(("key", key.creation_timestamp_ms))

    def on_restart_request(self, request: RestartRequest) -> None:
        """Note it."""
        self.heard.append(("restart", request))

    def on_logging_level_update(self, namespace: str, level: str) -> None:
        """Note it."""
        self.heard.append(("level", namespace, level))


class Store:
    """A started store at a bench."""

    def __init__(
        self, *written: tuple[str, bytes | None], transactional_id: str | None = None
    ) -> None:
        self.bench = TopicBench()
        self.bench.make_topic("configs")
        for key, value in written:
            self.bench.write("configs", key, value)
        self.store = ConfigStore(
            self.bench.outbox, self.bench.spawn, topic=TOPIC, transactional_id=transactional_id
        )
        self.bench.serve(self.store.log)
        self.listener = Listener()
        self.store.set_update_listener(self.listener)
        self.bench.call(self.store.start())

    def write(self, key: str, value: bytes | None) -> None:
        """A record by another worker."""
        self.bench.write("configs", key, value)
        self.bench.settle()


CONNECTOR = ("connector-c", properties_value(C))
TASKS = (("task-c-0", properties_value(T0)), ("task-c-1", properties_value(T1)))
COMMIT = ("commit-c", commit_value(2))


def test_tasks_apply_only_on_commit() -> None:
    """C-CFG-01: until the commit is read, the snapshot shows the old tasks."""
    s = Store(CONNECTOR, *TASKS)
    before = s.store.snapshot()
    assert (before.tasks("c"), before.task_config(ConnectorTaskId("c", 0))) == ((), None)
    s.write(*COMMIT)
    after = s.store.snapshot()
    assert after.tasks("c") == (ConnectorTaskId("c", 0), ConnectorTaskId("c", 1))
    assert after.task_config(ConnectorTaskId("c", 1)) == T1
    assert (after.task_config_generation("c"), after.pending_fencing("c")) == (0, True)
    assert after.applied_connector_config("c") == C
    assert s.listener.heard == [("tasks", ConnectorTaskId("c", 0), ConnectorTaskId("c", 1))]


def test_a_hole_of_compaction_makes_a_connector_inconsistent() -> None:
    """C-CFG-02: it exposes no tasks until the next whole commit repairs it."""
    s = Store(CONNECTOR, TASKS[1], COMMIT)
    hole = s.store.snapshot()
    assert (hole.tasks("c"), hole.task_count("c")) == ((), 2)
    assert hole.inconsistent_connectors == ("c",)
    assert hole.assignable().connectors == {"c": 0}
    for record in (*TASKS, COMMIT):
        s.write(*record)
    repaired = s.store.snapshot()
    assert (len(repaired.tasks("c")), repaired.inconsistent_connectors) == (2, ())
    assert repaired.assignable().connectors == {"c": 2}


def test_a_commit_of_fewer_tasks_takes_more_than_it_names() -> None:
    """An older task left over by compaction does no harm."""
    s = Store(CONNECTOR, *TASKS, ("commit-c", commit_value(1)))
    assert s.store.snapshot().tasks("c") == (ConnectorTaskId("c", 0),)
    assert not s.store.snapshot().inconsistent_connectors


def test_a_commit_without_its_connector_is_dropped() -> None:
    """The connector was deleted, and compaction took its configuration."""
    s = Store(*TASKS, COMMIT)
    state = s.store.snapshot()
    assert (state.task_count("c"), state.connectors(), state.offset) == (0, (), 3)


def test_a_commit_of_no_tasks_needs_none() -> None:
    """Stopping commits zero; the generation grows only where tasks were ever written."""
    s = Store(CONNECTOR, ("commit-c", commit_value(0)))
    assert s.store.snapshot().task_config_generation("c") is None
    for record in (*TASKS, COMMIT, ("commit-c", commit_value(0))):
        s.write(*record)
    assert s.store.snapshot().task_config_generation("c") == 1


def test_target_states_of_all_releases_are_read() -> None:
    """`state.v2` wins, `state` alone is what older leaders wrote, an unknown state is ignored."""
    s = Store(CONNECTOR)
    for value, state in (
        (target_state_value(TargetState.STOPPED), TargetState.STOPPED),
        (b'{"state":"PAUSED"}', TargetState.PAUSED),
        (b'{"state":"STARTED","state.v2":7}', TargetState.STARTED),
        (b'{"state":"DREAMING"}', TargetState.STARTED),
        (b"[]", TargetState.STARTED),
    ):
        s.write("target-state-c", value)
        assert s.store.snapshot().target_state("c") is state
    assert s.listener.heard == [("target", "c")] * 3


def test_a_target_state_is_told_only_where_it_changes_a_known_connector() -> None:
    """Neither a repeated state nor one of an unknown connector, nor a tombstone."""
    s = Store(CONNECTOR)
    paused = target_state_value(TargetState.PAUSED)
    for key, value in (
        ("target-state-c", paused),
        ("target-state-c", paused),
        ("target-state-other", paused),
        ("target-state-c", None),
    ):
        s.write(key, value)
    assert s.listener.heard == [("target", "c")]
    assert s.store.snapshot().target_state("c") is TargetState.STARTED
    assert s.store.snapshot().target_state("other") is TargetState.PAUSED


def test_restarts_and_levels_from_before_the_start_are_old_news() -> None:
    """After the start every listener's method is called; a missing flag is false."""
    request = ("restart-connector-c", b'{"include-tasks":true}')
    level = ("logger-cluster-root", b'{"level":"DEBUG"}')
    s = Store(request, level)
    assert s.listener.heard == []
    s.write(*request)
    s.write(*level)
    s.write("connector-c", properties_value(C))
    s.write("connector-c", None)
    assert s.listener.heard == [
        ("restart", RestartRequest("c", only_failed=False, include_tasks=True)),
        ("level", "root", "DEBUG"),
        ("updated", "c"),
        ("removed", "c"),
    ]


def test_what_cannot_be_read_leaves_the_offset_and_what_is_unknown_moves_it() -> None:
    """The offset is one past the last record that was JSON."""
    s = Store(("connector-c", b"{"), ("what-is-this", b"1"), ("connector-d", b"no json"))
    assert (s.store.snapshot().offset, s.store.snapshot().connectors()) == (2, ())
    assert Store(("connector-c", b"{")).store.snapshot().offset == -1


def test_task_counts_and_session_keys_are_kept() -> None:
    """A task count record ends the pending fencing; a broken key is ignored."""
    s = Store(CONNECTOR, *TASKS, COMMIT, ("tasks-fencing-c", b'{"task-count":2}'))
    assert s.store.snapshot().task_count_record("c") == 2
    assert not s.store.snapshot().pending_fencing("c")
    key = SessionKey(b"secret", "HmacSHA256", 17)
    s.bench.call(s.store.put_session_key(key))
    s.write("session-key", b'{"key":"x"}')
    assert (s.store.snapshot().session_key, s.listener.heard) == (key, [("key", 17)])


def test_a_commit_that_names_no_number_costs_the_rest_of_its_poll() -> None:
    """Java throws out of the consumer's callback; the poll logs it and forgets the rest."""
    s = Store(CONNECTOR, ("commit-c", b"{}"), ("connector-d", properties_value(C)))
    assert s.store.snapshot().connectors() == ("c",)


def test_values_of_the_wrong_kind_change_nothing() -> None:
    """No map, no properties, no string, no number, no task in the key: the record is left out."""
    s = Store(CONNECTOR, *TASKS, COMMIT)
    before = s.store.snapshot()
    for key, value in (
        ("connector-c", b"[]"),
        ("connector-c", b'{"properties":[]}'),
        ("task-c-0", None),
        ("task-c", properties_value(T0)),
        ("task-c-0", b'{"properties":1}'),
        ("commit-c", b"[]"),
        ("commit-c", None),
        ("tasks-fencing-c", b"[]"),
        ("session-key", b"[]"),
        ("session-key", b'{"key":"aGk=","algorithm":"a","creation-timestamp":true}'),
        ("logger-cluster-root", b'{"level":1}'),
        ("restart-connector-c", b"[]"),
        ("target-state-c", b'{"state":1}'),
    ):
        s.write(key, value)
    after = s.store.snapshot()
    assert structs.replace(after, offset=before.offset) == before
    assert (after.offset, s.listener.heard) == (before.offset + 13, [])


def test_flags_and_properties_of_the_wrong_kind_are_as_if_absent() -> None:
    """A restart request's flag is false then, a property is not there."""
    s = Store()
    s.write("restart-connector-c", b'{"include-tasks":1,"only-failed":true}')
    s.write("connector-c", b'{"properties":{"a":"1","b":2,"c":null}}')
    assert s.listener.heard[0] == ("restart", RestartRequest("c", only_failed=True))
    assert s.store.snapshot().connector_config("c") == {"a": "1"}
    assert s.store.contains("c")


def test_what_java_cannot_survive_ends_the_start() -> None:
    """A record without a key, a session key that is no base64."""
    for key, value in ((None, b"{}"), ("session-key", _BROKEN_KEY)):
        bench = TopicBench()
        bench.make_topic("configs")
        bench.write("configs", key, value)
        store = ConfigStore(bench.outbox, bench.spawn, topic=TOPIC)
        bench.serve(store.log)
        with pytest.raises(ClientException, match=r"NullPointer|IllegalArgument"):
            bench.call(store.start())


def test_numbers_of_tasks_are_cut_down_to_32_bits() -> None:
    """Java cuts a long so; nobody has so many tasks, so the connector is inconsistent."""
    s = Store(CONNECTOR, ("commit-c", b'{"tasks":99999999999}'))
    state = s.store.snapshot()
    assert (state.task_count("c"), state.tasks("c")) == (1_215_752_191, ())


def test_connectors_come_in_the_order_of_javas_maps() -> None:
    """The order is that of the store's map, sorted again into the smaller table of its copy."""
    s = Store(*((f"connector-{name}", properties_value(C)) for name in ("a", "c-", "b")))
    assert s.store.snapshot().connectors() == ("a", "b", "c-")


def test_counted_records_move_the_offset() -> None:
    """Counted records are configurations of connectors long gone."""
    s = Store()
    run = RecordRun(partition=0, first_offset=0, count=900, size_bytes=1)
    s.store.log.fetched(Fetched(topic="configs", records=(run,), positions={0: 900}))
    s.bench.settle()
    assert s.store.snapshot().offset == 900


def test_a_broker_that_cannot_tell_committed_ends_ends_the_start() -> None:
    """With exactly-once support the worker needs the admin client's answer."""
    bench = TopicBench()
    topic = structs.replace(TOPIC, read_committed=True)
    store = ConfigStore(bench.outbox, bench.spawn, topic=topic, transactional_id="x")
    bench.serve(store.log)
    bench.failures[ListEndOffsets] = ["UnsupportedVersionException"]
    with pytest.raises(ConnectException, match="Enabling exactly-once support"):
        bench.call(store.start())
    other = TopicBench()
    other.failures[ListEndOffsets] = ["TopicAuthorizationException"]
    store = ConfigStore(other.outbox, other.spawn, topic=TOPIC)
    other.serve(store.log)
    with pytest.raises(ConnectException, match="Error while getting end offsets"):
        other.call(store.start())


def test_a_failing_reader_and_a_failing_claim_are_told() -> None:
    """Refresh names the reader's error, the claim the producer's; it can be tried again."""
    s = Store(transactional_id="x")
    s.bench.failures[ListEndOffsets] = ["TopicAuthorizationException"]
    with pytest.raises(ConnectException, match="Error trying to read to end of config log"):
        s.bench.call(s.store.refresh(1_000))
    s.bench.failures[InitTransactions] = ["TimeoutException"]
    with pytest.raises(ConnectException, match="Failed to create and initialize fencable"):
        s.bench.call(s.store.claim_write_privileges())
    s.bench.call(s.store.claim_write_privileges())
    assert s.store._has_privileges


def test_a_config_topic_of_two_partitions_is_refused() -> None:
    """The order of records could not be told."""
    bench = TopicBench()
    bench.make_topic("configs", partitions=2)
    store = ConfigStore(bench.outbox, bench.spawn, topic=TOPIC)
    bench.serve(store.log)
    with pytest.raises(ConfigException, match="found 2 partitions"):
        bench.call(store.start())


def test_task_configurations_are_read_back_before_they_are_committed() -> None:
    """Read to the end, write tasks, read to the end, write the commit, read to the end."""
    s = Store(CONNECTOR)
    s.bench.asked.clear()
    s.bench.call(s.store.put_task_configs("c", (T0, T1)))
    assert [type(effect) for effect in s.bench.asked] == [
        *(ListEndOffsets, Produce, Produce, ListEndOffsets, Produce, ListEndOffsets)
    ]
    assert s.bench.records("configs")[1:] == [*TASKS, COMMIT]
    assert len(s.store.snapshot().tasks("c")) == 2


def test_stopped_is_written_for_old_workers_too() -> None:
    """C-CFG-03: PAUSED in `state`, STOPPED in `state.v2`."""
    s = Store()
    s.bench.call(s.store.put_connector_config("c", C, TargetState.STOPPED))
    assert s.bench.records("configs") == [
        ("target-state-c", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
        CONNECTOR,
    ]
    assert s.store.snapshot().target_state("c") is TargetState.STOPPED


def test_removal_leaves_the_tasks_records_alone() -> None:
    """Tombstones of the configuration and of the target state."""
    s = Store(CONNECTOR, *TASKS, COMMIT)
    s.bench.call(s.store.remove_connector_config("c"))
    assert s.bench.records("configs")[4:] == [("connector-c", None), ("target-state-c", None)]
    state = s.store.snapshot()
    assert (state.connectors(), state.target_state("c"), state.task_configs) == ((), None, {})


def test_writes_that_are_not_read_back_need_no_end_of_the_topic() -> None:
    """Target states and levels may be written by any worker."""
    s = Store(CONNECTOR)
    s.bench.asked.clear()
    s.bench.call(s.store.put_target_state("c", TargetState.PAUSED))
    s.bench.call(s.store.put_logger_level("root", "INFO"))
    assert [type(effect) for effect in s.bench.asked] == [Produce, Produce]


@pytest.mark.parametrize("error", ["TimeoutException", "TopicAuthorizationException"])
def test_a_failed_write_is_a_connect_exception(error: str) -> None:
    """The cause of the exception is the producer's."""
    s = Store(CONNECTOR)
    s.bench.failures[Produce] = [error] * 2
    with pytest.raises(ConnectException, match="Error writing target state") as raised:
        s.bench.call(s.store.put_target_state("c", TargetState.PAUSED))
    assert raised.value.cause == error
    with pytest.raises(ConnectException, match=r"restart request for \{connectorName='c'"):
        s.bench.call(s.store.put_restart_request(RestartRequest("c")))


def test_a_write_that_is_not_read_back_in_30_seconds_fails() -> None:
    """Refreshing has a bound of its own, and its own exception."""
    s = Store(CONNECTOR)
    s.bench.hold("configs")
    with pytest.raises(ConnectException, match="Error writing task count record"):
        s.bench.call(s.store.put_task_count_record("c", 1))
    assert s.bench.outbox.now_ms == 30_000
    with pytest.raises(TimeoutException):
        s.bench.call(s.store.refresh(3_000))
    assert s.bench.outbox.now_ms == 33_000
    s.bench.release("configs")
    s.bench.call(s.store.refresh(1))


def test_a_leader_writes_only_with_the_privilege_it_claimed() -> None:
    """A fenced producer is closed, and the privilege must be claimed anew."""
    s = Store(CONNECTOR, transactional_id="connect-cluster-g")
    with pytest.raises(ClientException, match="without claiming write privileges"):
        s.bench.call(s.store.put_task_configs("c", (T0,)))
    s.bench.call(s.store.claim_write_privileges())
    s.bench.call(s.store.put_task_configs("c", (T0, T1)))
    assert s.bench.records("configs")[1:] == [*TASKS, COMMIT]
    s.bench.fenced.append("connect-cluster-g")
    with pytest.raises(PrivilegedWriteException) as raised:
        s.bench.call(s.store.remove_connector_config("c"))
    assert raised.value.cause == "ProducerFencedException"
    assert not s.store._has_privileges
    s.bench.settle()
    assert CloseProducer("connect-cluster-g") in s.bench.asked
    s.bench.call(s.store.claim_write_privileges())
    s.bench.call(s.store.remove_connector_config("c"))
    last = [e for e in s.bench.asked if isinstance(e, ProduceInTransaction)][-1]
    assert last.records == ((b"connector-c", None), (b"target-state-c", None))
    s.bench.call(s.store.stop())


def test_any_worker_writes_target_states_without_the_privilege() -> None:
    """Target states go through the log's own producer, fencing or not."""
    s = Store(CONNECTOR, transactional_id="connect-cluster-g")
    s.bench.call(s.store.put_target_state("c", TargetState.PAUSED))
    assert s.store.snapshot().target_state("c") is TargetState.PAUSED
