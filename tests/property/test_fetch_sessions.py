"""A consumer with a fetch session reads what was produced, and is told what is new, no more."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.broker.metadata.changes import TopicCreated, TopicDeleted
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.stored_batches import next_batch
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.data_world import TOPIC_ID, DataWorld, batch_of

pytestmark = pytest.mark.property

PARTITIONS = 3
PRODUCED = st.tuples(
    st.just("produce"), st.integers(0, PARTITIONS - 1), st.integers(1, 4), st.integers(0, 300)
)
FETCHED = st.tuples(
    st.just("fetch"), st.integers(1, 900), st.integers(1, 600), st.sampled_from([0, 0, 50])
)
FORGOTTEN = st.tuples(st.just("forget"), st.integers(0, PARTITIONS - 1), st.just(0), st.just(0))
LOST = st.tuples(st.just("lose"), st.just(0), st.just(0), st.just(0))
STEPS = st.lists(st.one_of(PRODUCED, FETCHED, FETCHED, FORGOTTEN, LOST), max_size=60)


@dataclass
class Consumer:
    """A client's side of one session, after FetchSessionHandler of the Java client."""

    world: DataWorld
    version: int
    session_id: int = 0
    epoch: int = 0
    wanted: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(PARTITIONS), 0))
    sent: dict[int, int] = field(default_factory=dict)
    told: dict[int, int] = field(default_factory=dict)
    values: dict[int, list[bytes]] = field(
        default_factory=lambda: {each: [] for each in range(PARTITIONS)}
    )

    def fetch(self, max_bytes: int, partition_max_bytes: int, wait_ms: int) -> None:
        """One request and its answer."""
        known = self.sent if self.epoch else {}
        changed = {each: at for each, at in self.wanted.items() if known.get(each) != at}
        gone = [each for each in known if each not in self.wanted]
        request = {
            "maxWaitMs": wait_ms,
            "minBytes": 1,
            "maxBytes": max_bytes,
            "sessionId": self.session_id,
            "sessionEpoch": self.epoch,
            "topics": self._named(
                [
                    {"partition": each, "fetchOffset": at, "partitionMaxBytes": partition_max_bytes}
                    for each, at in changed.items()
                ]
            ),
            "forgottenTopicsData": self._named(gone),
        }
        token, response = self.world.call(ApiKey.FETCH, self.version, request)
        if response is None:
            self.world.pass_time(wait_ms)
            response = self.world.late(ApiKey.FETCH, self.version, token)
        assert response is not None
        assert response["errorCode"] == 0
        self.sent = dict(self.wanted)
        for partition in gone:
            del self.told[partition]
        self._take(response)

    def _named(self, partitions: list[Fields] | list[int]) -> list[Fields]:
        if not partitions:
            return []
        return [{"topic": "t", "topicId": TOPIC_ID, "partitions": partitions}]

    def _take(self, response: Fields) -> None:
        is_full = self.epoch == 0
        self.session_id = response["sessionId"]
        self.epoch = self.epoch + 1 if self.session_id else 0
        if is_full:
            self.told = {}
        seen = set()
        for topic in response["responses"]:
            for each in topic["partitions"]:
                seen.add(each["partitionIndex"])
                self._take_partition(each, is_full=is_full)
        for partition in set(self.wanted) - seen:
            assert not is_full
            assert self.told[partition] == self.world.log(partition=partition).high_watermark

    def _take_partition(self, answer: Fields, *, is_full: bool) -> None:
        partition = answer["partitionIndex"]
        is_new = self.told.get(partition) != answer["highWatermark"]
        assert answer["records"] or is_new or is_full or not self.session_id
        self.told[partition] = answer["highWatermark"]
        position = 0
        while (batch := next_batch(answer["records"], position)) is not None:
            position += batch.size
            for record in batch.records():
                if record.offset >= self.wanted[partition]:
                    assert record.offset == self.wanted[partition]
                    self.values[partition].append(record.value or b"")
                    self.wanted[partition] += 1
        assert position == len(answer["records"])


@given(steps=STEPS, version=st.sampled_from([7, 11, 12, 13, 18]))
def test_every_record_is_consumed_once_and_in_order(
    steps: list[tuple[str, int, int, int]], version: int
) -> None:
    """Whatever the limits, waits, forgotten partitions and lost sessions."""
    world = DataWorld()
    world.image.apply(TopicDeleted("t"))
    world.image.apply(TopicCreated("t", TOPIC_ID, ((1,),) * PARTITIONS))
    produced: dict[int, list[bytes]] = {each: [] for each in range(PARTITIONS)}
    consumer = Consumer(world, version)
    away: dict[int, int] = {}
    for number, (verb, first, second, third) in enumerate(steps):
        if verb == "produce":
            values = [b"%d-%d" % (number, each) + b"x" * third for each in range(second)]
            assert world.produced(batch_of(*values), partition=first)["errorCode"] == 0
            produced[first] += values
        elif verb == "fetch":
            if consumer.wanted:
                consumer.fetch(first, second, third)
        elif verb == "forget":
            if first in consumer.wanted:
                away[first] = consumer.wanted.pop(first)
            else:
                consumer.wanted[first] = away.pop(first)
        else:
            world.apis.fetches.forget_broker(1)
            consumer.session_id = consumer.epoch = 0
    consumer.wanted.update(away)
    left = sum(len(values) for values in produced.values()) + PARTITIONS
    for _ in range(left):
        consumer.fetch(1, 1, 0)
    assert consumer.values == produced
