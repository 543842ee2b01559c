"""The status store: what counts is what was read back; safe writes give way."""

from coordinator_sim.connect.effects import Produce
from coordinator_sim.connect.stores.status_records import (
    State,
    Status,
    Subject,
    TopicStatus,
    status_key,
)
from coordinator_sim.connect.stores.status_store import StatusStore
from coordinator_sim.connect.stores.topic_log import InternalTopic
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim_conformance.client_cases.topic_bench import TopicBench

TOPIC = InternalTopic(name="status", setting="status.storage.topic", purpose="statuses")
T0, T1 = ConnectorTaskId("a-b", 0), ConnectorTaskId("a-b", 1)


def status(
    subject: Subject, state: State = State.RUNNING, worker: str = "w1:8083", generation: int = 3
) -> Status:
    """A status."""
    return Status(subject=subject, state=state, worker_id=worker, generation=generation)


def make_store() -> tuple[StatusStore, TopicBench]:
    """A started store at a bench."""
    bench = TopicBench()
    store = StatusStore(bench.outbox, bench.spawn, topic=TOPIC)
    bench.serve(store.log)
    bench.call(store.start())
    return store, bench


def test_a_status_counts_once_it_is_read_back() -> None:
    """Until then the old one, or none, is told; the connector is known at once."""
    store, bench = make_store()
    store.put(status("a-b"))
    assert (store.get("a-b"), store.connectors()) == (None, ("a-b",))
    bench.settle()
    assert store.get("a-b") == status("a-b")
    assert bench.records("status") == [
        (
            "status-connector-a-b",
            b'{"state":"RUNNING","trace":null,"worker_id":"w1:8083","generation":3,"version":null}',
        )
    ]


def test_a_safe_write_gives_way_to_a_newer_one_of_another_worker() -> None:
    """A safe write replaces nothing, its own status, and one of its generation or older."""
    store, bench = make_store()
    for put, worker, generation in (
        (store.put_safe, "w1", 3),
        (store.put_safe, "w2", 2),
        (store.put_safe, "w2", 3),
        (store.put_safe, "w2", 1),
        (store.put, "w3", 1),
    ):
        put(status(T0, worker=worker, generation=generation))
        bench.settle()
    written = [value or b"" for _, value in bench.records("status")]
    assert [b'"worker_id":"w2"' in value for value in written] == [False, True, True, False]


def test_destroyed_is_a_tombstone() -> None:
    """A task's removes the task; a connector's removes the connector and all its tasks."""
    store, bench = make_store()
    for subject in ("a-b", T0, T1):
        store.put(status(subject))
    bench.settle()
    assert [each.subject for each in store.get_all("a-b")] == [T0, T1]
    store.put(status(T0, State.DESTROYED))
    bench.settle()
    assert [each.subject for each in store.get_all("a-b")] == [T1]
    store.put(status("a-b", State.DESTROYED))
    bench.settle()
    assert bench.records("status")[-1] == ("status-connector-a-b", None)
    assert (store.get("a-b"), store.get(T1), store.connectors()) == (None, None, ())


def test_a_stale_unassigned_does_not_hide_a_running_task() -> None:
    """The old owner's last word may come after the new owner's first."""
    store, bench = make_store()
    store.put(status(T0, worker="new", generation=4))
    store.put(status(T0, State.UNASSIGNED, worker="old", generation=4))
    bench.settle()
    assert store.get(T0) == status(T0, worker="new", generation=4)
    store.put(status(T0, State.UNASSIGNED, worker="old", generation=5))
    bench.settle()
    found = store.get(T0)
    assert found is not None
    assert found.state is State.UNASSIGNED


def test_a_retriable_failure_is_sent_again_while_it_is_wanted() -> None:
    """Not once a newer status was put, nor after a failure that no retry mends."""
    store, bench = make_store()
    bench.failures[Produce] = ["TimeoutException"] * 2
    store.put(status(T0))
    bench.settle()
    assert len(bench.records("status")) == 1
    bench.failures[Produce] = ["RecordTooLargeException"]
    store.put(status(T0, State.PAUSED))
    bench.settle()
    assert len(bench.records("status")) == 1
    bench.failures[Produce] = ["TimeoutException", "TimeoutException"]
    store.put(status(T0, State.PAUSED, generation=3))
    store.put_safe(status(T1, generation=4))
    bench.settle()
    assert [key for key, _ in bench.records("status")] == [status_key(T0), status_key(T1)]


def test_topics_of_a_connector_are_kept_until_deleted() -> None:
    """One record a topic and connector."""
    store, bench = make_store()
    used = TopicStatus(topic="lines", connector="a-b", task=1, discover_timestamp_ms=5)
    store.put_topic(used)
    bench.call(store.flush())
    bench.settle()
    assert (store.get_topic("a-b", "lines"), store.get_all_topics("a-b")) == (used, (used,))
    store.delete_topic("a-b", "lines")
    bench.settle()
    assert store.get_all_topics("a-b") == ()
    assert bench.records("status")[-1] == ("status-topic-lines:connector-a-b", None)


def test_what_is_no_status_is_left_out() -> None:
    """Unknown keys, broken values, states of no release."""
    store, bench = make_store()
    for key, value in (
        ("status-connector-", b"{}"),
        ("status-connector-c", b'{"state":"ASLEEP","worker_id":"w","generation":1}'),
        ("status-connector-c", b'{"state":"RUNNING","worker_id":"w","generation":"1"}'),
        ("status-connector-c", b'{"state":"RUNNING","worker_id":null,"generation":1}'),
        ("status-connector-c", b'{"state":"RUNNING","worker_id":"w","generation":1,"trace":1}'),
        ("status-connector-c", b"{"),
        ("status-connector-c", b"[]"),
        ("status-task-c", b"{}"),
        ("status-task-c-0", b"{}"),
        ("status-task-c-0", None),
        ("status-topic-lines", b"{}"),
        ("status-topic-:connector-c", b"{}"),
        ("status-topic-lines:connector-c", b"{}"),
        ("status-topic-lines:connector-c", b'{"topic":{"name":1}}'),
        ("status-topic-lines:connector-c", b'{"topic":{"name":"l","connector":"c"}}'),
        ("status-topic-lines:connector-c", None),
        ("something", b"{}"),
    ):
        bench.write("status", key, value)
    bench.settle()
    assert (store.connectors(), store.get_all("c"), store.get_all_topics("c")) == ((), (), ())


def test_generations_are_cut_down_to_32_bits() -> None:
    """Java cuts a long so."""
    store, bench = make_store()
    value = b'{"state":"RUNNING","worker_id":"w","generation":5000000000}'
    bench.write("status", "status-connector-c", value)
    bench.settle()
    assert store.get("c") == status("c", worker="w", generation=705_032_704)


def test_a_stopped_store_retries_nothing() -> None:
    """The store's threads end."""
    store, bench = make_store()
    bench.call(store.stop())
    bench.failures[Produce] = ["TimeoutException"]
    store.put(status(T0))
    bench.settle()
    assert bench.records("status") == []
