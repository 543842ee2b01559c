"""The offset store: the last value of each key, and which source partitions there are."""

import pytest

from coordinator_sim.connect.effects import Fetched, Produce, RecordRun
from coordinator_sim.connect.exceptions import ExecutionException
from coordinator_sim.connect.stores.offset_store import OffsetStore, offset_key, offset_value
from coordinator_sim.connect.stores.topic_log import InternalTopic
from coordinator_sim_conformance.client_cases.topic_bench import TopicBench

TOPIC = InternalTopic(name="offsets", setting="offset.storage.topic", purpose="offsets")
A, B = offset_key("c", {"file": "a"}), offset_key("c", {"file": "b"})


def make_store(*written: tuple[bytes, bytes | None]) -> tuple[OffsetStore, TopicBench]:
    """A started store at a bench."""
    bench = TopicBench()
    bench.make_topic("offsets")
    for key, value in written:
        bench.write("offsets", key.decode(), value)
    store = OffsetStore(bench.outbox, bench.spawn, topic=TOPIC)
    bench.serve(store.log)
    bench.call(store.start())
    return store, bench


def test_the_last_value_wins_and_a_tombstone_ends_it() -> None:
    """What was read at the start."""
    store, _ = make_store((A, b"1"), (B, b"2"), (A, b"3"), (B, None))
    assert (store.offset_of(A), store.offset_of(B), store.record_count) == (b"3", None, 4)
    assert store.connector_partitions("c") == ({"file": "a"},)
    assert store.connector_partitions("d") == ()


def test_get_reads_to_the_end_first() -> None:
    """What another worker has just written is in the answer."""
    store, bench = make_store()
    bench.write("offsets", A.decode(), offset_value({"position": 6}))
    assert bench.call(store.get((A, B), 1_000)) == {A: b'{"position":6}', B: None}


def test_put_is_over_when_all_is_written() -> None:
    """Or with the first error, whatever the others do."""
    store, bench = make_store()
    bench.call(store.await_put(store.put(((A, b"1"), (B, b"2"))), 1_000))
    assert bench.records("offsets") == [(A.decode(), b"1"), (B.decode(), b"2")]
    bench.failures[Produce] = ["RecordTooLargeException"]
    with pytest.raises(ExecutionException, match="RecordTooLargeException"):
        bench.call(store.await_put(store.put(((A, b"1"), (B, b"3"))), 1_000))
    bench.settle()
    assert store.offset_of(B) == b"3"
    nothing = store.put(())
    bench.settle()
    assert not nothing.done
    bench.call(store.stop())


def test_equal_source_partitions_are_one_whatever_their_order() -> None:
    """Java compares the maps, not the bytes of the keys."""
    store, _ = make_store(
        (b'["c",{"x":1,"y":2}]', b"1"),
        (b'["c",{"y":2,"x":1}]', b"2"),
        *((key, b"1") for key in (b"{", b"[]", b'["c"]', b'[1,{"x":1}]', b'["c",null]')),
    )
    assert store.connector_partitions("c") == ({"x": 1, "y": 2},)


def test_a_counted_run_is_read_and_kept_by_nobody() -> None:
    """Records of the run count, and move the position."""
    store, bench = make_store()
    run = RecordRun(partition=0, first_offset=0, count=1_000_000, size_bytes=1)
    store.log.fetched(Fetched(topic="offsets", records=(run,), positions={0: 1_000_000}))
    bench.settle()
    assert (store.record_count, store.log._positions) == (1_000_000, {0: 1_000_000})
