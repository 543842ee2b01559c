"""The port of Java's share consumer: sessions with several brokers, and what becomes of records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.clients.async_consumer.states import MemberState
from coordinator_sim.clients.config import ShareConsumerConfig
from coordinator_sim.clients.effects import AcknowledgementsCompleted, Effect
from coordinator_sim.clients.share_consumer import ShareConsumer
from coordinator_sim.clients.share_consumer.acknowledgements import Acknowledgements
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.kafka.share_types import AcknowledgeType
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.messages import share_acknowledge, share_fetch
from coordinator_sim.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from coordinator_sim_conformance.client_cases.bench import Bench, PortBench

ID = b"t" * 16
NODES = tuple(MetadataResponseBroker(number, f"b{number}", 9092) for number in (1, 2))
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
FETCH, ACKNOWLEDGE = share_fetch.ShareFetchRequest, share_acknowledge.ShareAcknowledgeRequest


class ShareBench(PortBench[ShareConsumer]):
    """A member of two brokers; broker 1 coordinates, partition 0 is led by 1, and 1 by `second`."""

    second = 1
    outcomes: list[AcknowledgementsCompleted]

    def metadata(self) -> MetadataResponse:
        """Return both brokers, and the topic."""
        partitions = tuple(
            MetadataResponsePartition(partition_index=number, leader_id=leader, leader_epoch=0)
            for number, leader in ((0, 1), (1, self.second))
        )
        topic = MetadataResponseTopic(name="t", topic_id=ID, partitions=partitions)
        return MetadataResponse(brokers=NODES, topics=(topic,))

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, AcknowledgementsCompleted):
            self.outcomes.append(effect)
        else:
            super()._do(effect)

    def to(self, node_id: int) -> list[share_fetch.ShareFetchRequest]:
        """Return the ShareFetches that wait at a broker."""
        waiting = [send for send in self.unanswered if send.node_id == node_id]
        return [send.request for send in waiting if isinstance(send.request, FETCH)]

    def answer_at(self, node_id: int, response: Response) -> None:
        """Answer the request that waits at a broker."""
        send = next(each for each in self.unanswered if each.node_id == node_id)
        self.unanswered.remove(send)
        self.do(self.port.on_response(send.correlation_id, response, self.now_ms))

    def deliver(self, node_id: int, *parts: share_fetch.PartitionData) -> None:
        """Answer the ShareFetch at a broker with partitions."""
        topic = share_fetch.ShareFetchableTopicResponse(ID, parts)
        self.answer_at(node_id, share_fetch.ShareFetchResponse(responses=(topic,)))


def member(second: int = 1, **settings: str) -> ShareBench:
    """A member with both partitions that polls, whose first ShareFetches wait."""
    port = ShareConsumer(
        ShareConsumerConfig.from_settings(
            {name.replace("_", "."): value for name, value in settings.items()}
        ),
        client_id="c",
        group_id="g",
        topics=("t",),
        assignors=(),
        bootstrap=NODES,
        member_id="m",
    )
    bench = ShareBench(Bench(), port)
    bench.second, bench.outcomes = second, []
    bench.poll()
    given = Assignment((TopicPartitions(ID, (0, 1)),))
    for assignment in (given, None):
        bench.answer(
            ShareGroupHeartbeatRequest,
            ShareGroupHeartbeatResponse(
                member_epoch=1, heartbeat_interval_ms=5_000, assignment=assignment
            ),
        )
    assert bench.port.state is MemberState.STABLE
    return bench


EXPLICIT = {"share_acknowledgement_mode": "explicit"}


def records(
    number: int, first: int, last: int, *acquired: tuple[int, int, int], **fields: object
) -> share_fetch.PartitionData:
    """A partition's part of an answer: records, and those of them that were acquired."""
    offsets = range(first, last + 1)
    told = tuple(Record(offset=each, timestamp_ms=0, key=None, value=None) for each in offsets)
    return share_fetch.PartitionData(
        partition_index=number,
        records=encode_record_batch(batch_of(told)),
        acquired_records=tuple(
            share_fetch.AcquiredRecords(*each) for each in acquired or ((first, last, 1),)
        ),
        **fields,  # type: ignore[arg-type] # the callers name fields
    )


# Sessions.


def test_each_broker_has_a_session_of_its_own() -> None:
    """Each begins with epoch 0 and names its partitions once."""
    bench = member(second=2)
    (first,), (second,) = bench.to(1), bench.to(2)
    assert [first.share_session_epoch, second.share_session_epoch] == [0, 0]
    assert [each.topics[0].partitions[0].partition_index for each in (first, second)] == [0, 1]

    bench.deliver(1)
    bench.advance(1)
    (again,) = bench.to(1)
    assert (again.share_session_epoch, again.topics, len(bench.to(2))) == (1, (), 1)


def test_a_moved_leader_is_followed_at_once() -> None:
    """The partition is forgotten at the old leader, and fetched at the one the answer names."""
    bench = member()
    moved = share_fetch.PartitionData(
        partition_index=1,
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        current_leader=share_fetch.LeaderIdAndEpoch(2, 1),
    )
    bench.deliver(1, moved)
    (old,), (new,) = bench.to(1), bench.to(2)
    assert old.forgotten_topics_data == (share_fetch.ForgottenTopic(ID, (1,)),)
    assert (new.share_session_epoch, new.topics[0].partitions[0].partition_index) == (0, 1)


def test_a_session_without_partitions_is_closed() -> None:
    """The last request to a broker that leads nothing any more has epoch -1."""
    bench = member(second=2)
    moved = share_fetch.PartitionData(
        partition_index=1,
        error_code=ErrorCode.FENCED_LEADER_EPOCH,
        current_leader=share_fetch.LeaderIdAndEpoch(1, 1),
    )
    bench.deliver(2, moved)
    bench.deliver(1)
    bench.advance(1)
    assert bench.to(2)[0].forgotten_topics_data == (share_fetch.ForgottenTopic(ID, (1,)),)
    bench.deliver(2)
    bench.advance(1)
    assert [each.share_session_epoch for each in bench.to(2)] == [-1]


@pytest.mark.parametrize(
    ("error", "epoch"),
    [
        (ErrorCode.SHARE_SESSION_NOT_FOUND, 0),
        (ErrorCode.INVALID_SHARE_SESSION_EPOCH, 0),
        (ErrorCode.SHARE_SESSION_LIMIT_REACHED, 0),
        (ErrorCode.UNKNOWN_SERVER_ERROR, 1),
    ],
)
def test_a_refused_fetch_begins_again_where_the_session_is_gone(
    error: ErrorCode, epoch: int
) -> None:
    """Other errors leave the session as it is."""
    bench = member()
    bench.answer_at(1, share_fetch.ShareFetchResponse(error_code=error))
    bench.advance(1)
    assert [each.share_session_epoch for each in bench.to(1)] == [epoch]


# Records.


def test_records_that_were_not_acquired_are_left_out_and_gaps_are_told() -> None:
    """An acquired offset without a record is acknowledged as a gap with the next request."""
    bench = member()
    batch = batch_of(tuple(Record(offset=n, timestamp_ms=0, key=None, value=None) for n in (3, 5)))
    bench.deliver(
        1,
        share_fetch.PartitionData(
            partition_index=0,
            records=encode_record_batch(batch),
            acquired_records=(share_fetch.AcquiredRecords(4, 6, 2),),
        ),
    )
    assert (bench.returned, bench.port.records) == ([None], {P0: {5: 2}})
    bench.poll()
    (sent,) = bench.to(1)
    assert sent.topics[0].partitions[0].acknowledgement_batches == (
        share_fetch.AcknowledgementBatch(4, 6, (0, 1, 0)),
    )


def test_a_poll_returns_whole_batches_until_it_has_enough() -> None:
    """The rest of a response waits for the next polls, and nothing is fetched meanwhile."""
    bench = member(max_poll_records="2")
    bench.deliver(1, records(0, 0, 2), records(1, 7, 8))
    assert bench.port.records == {P0: {0: 1, 1: 1, 2: 1}}
    bench.poll()
    assert bench.port.records == {P1: {7: 1, 8: 1}}
    assert not bench.to(1)


def test_all_records_must_be_acknowledged_in_explicit_mode() -> None:
    """A poll before that raises; so does an acknowledgement of a record that is not held."""
    bench = member(**EXPLICIT)
    bench.deliver(1, records(0, 0, 1))
    assert bench.port.acknowledge(P0, 0, AcknowledgeType.REJECT) is None
    assert bench.port.acknowledge(P0, 9, AcknowledgeType.ACCEPT) == "IllegalStateException"
    bench.poll()
    assert bench.returned == [None, "IllegalStateException"]


def test_a_renewed_record_comes_again_once_its_lock_is_renewed() -> None:
    """The fetch that renews asks for no records, and its success hands the record out again."""
    bench = member(**EXPLICIT)
    bench.deliver(1, records(0, 0, 1))
    bench.port.acknowledge(P0, 0, AcknowledgeType.RENEW)
    bench.port.acknowledge(P0, 1, AcknowledgeType.ACCEPT)
    bench.poll(100)
    (renewal,) = bench.to(1)
    assert (renewal.is_renew_ack, renewal.max_records, renewal.max_wait_ms) == (True, 0, 0)
    bench.deliver(1, share_fetch.PartitionData(partition_index=0))
    bench.advance(100)
    assert bench.port.records == {}
    bench.poll()
    assert (bench.returned, bench.port.records) == ([None] * 3, {P0: {0: 1}})


def test_a_failed_renewal_loses_the_record() -> None:
    """The lock is over, and the record is another member's."""
    bench = member(**EXPLICIT)
    bench.deliver(1, records(0, 0, 0))
    bench.port.acknowledge(P0, 0, AcknowledgeType.RENEW)
    bench.poll(100)
    refused = share_fetch.PartitionData(
        partition_index=0, acknowledge_error_code=ErrorCode.INVALID_RECORD_STATE
    )
    bench.deliver(1, refused)
    bench.advance(100)
    assert bench.port.records == {}
    assert [each.error for each in bench.outcomes] == ["InvalidRecordStateException"]


# Commits, and the end.


def acknowledged(error: ErrorCode = ErrorCode.NONE) -> share_acknowledge.ShareAcknowledgeResponse:
    """The answer to a ShareAcknowledge of partition 0."""
    part = share_acknowledge.PartitionData(partition_index=0, error_code=error)
    topic = share_acknowledge.ShareAcknowledgeTopicResponse(ID, (part,))
    return share_acknowledge.ShareAcknowledgeResponse(responses=(topic,))


def committing() -> ShareBench:
    """A member that has committed two accepted records and waits for the outcome."""
    bench = member(**EXPLICIT)
    bench.deliver(1, records(0, 0, 1))
    for offset in (0, 1):
        bench.port.acknowledge(P0, offset, AcknowledgeType.ACCEPT)
    bench.do(bench.port.commit_sync(bench.now_ms)[1])
    return bench


def test_a_commit_is_repeated_after_an_error_that_passes() -> None:
    """The second attempt has the same acknowledgements, and the next epoch."""
    bench = committing()
    bench.answer_at(1, acknowledged(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    assert bench.committed == []
    bench.advance(5_000)
    first, second = bench.sent(ACKNOWLEDGE)
    assert (first.topics, first.share_session_epoch + 1) == (
        second.topics,
        second.share_session_epoch,
    )
    bench.answer_at(1, acknowledged())
    assert [each.error for each in bench.committed] == [None]


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (acknowledged(ErrorCode.INVALID_RECORD_STATE), "InvalidRecordStateException"),
        (acknowledged(ErrorCode.NOT_LEADER_OR_FOLLOWER), "NotLeaderOrFollowerException"),
        (share_acknowledge.ShareAcknowledgeResponse(), "InvalidRecordStateException"),
        (
            share_acknowledge.ShareAcknowledgeResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND),
            "GroupIdNotFoundException",
        ),
    ],
)
def test_a_commit_ends_with_the_error_that_does_not_pass(
    response: share_acknowledge.ShareAcknowledgeResponse, error: str
) -> None:
    """A partition that the answer leaves out counts as refused, too."""
    bench = committing()
    bench.answer_at(1, response)
    assert [each.error for each in bench.committed] == [error]
    assert [each.error for each in bench.outcomes] == [error]


def test_a_commit_in_a_lost_session_fails_with_its_second_attempt() -> None:
    """A new session takes no acknowledgements of the old one."""
    bench = committing()
    response = share_acknowledge.ShareAcknowledgeResponse(
        error_code=ErrorCode.SHARE_SESSION_NOT_FOUND
    )
    bench.answer_at(1, response)
    bench.advance(5_000)
    assert [each.error for each in bench.committed] == ["NetworkException"]


def test_a_broken_connection_fails_what_was_on_the_way() -> None:
    """The acknowledgements are not repeated, and the next session begins with epoch 0."""
    bench = committing()
    bench.disconnect(1)
    assert [each.error for each in bench.committed] == ["DisconnectException"]
    bench.poll()
    bench.advance(2_000)
    assert [each.share_session_epoch for each in bench.to(1)] == [0]


def test_closing_sends_the_last_acknowledgements_with_epoch_minus_one_and_leaves() -> None:
    """Records that are not acknowledged are left to others."""
    bench = member(**EXPLICIT)
    bench.deliver(1, records(0, 0, 1))
    bench.port.acknowledge(P0, 0, AcknowledgeType.ACCEPT)
    bench.close()
    (last,) = bench.sent(ACKNOWLEDGE)
    assert last.share_session_epoch == -1
    assert last.topics[0].partitions[0].acknowledgement_batches == (
        share_acknowledge.AcknowledgementBatch(0, 0, (1,)),
    )
    bench.answer_at(1, acknowledged())
    assert bench.sent(ShareGroupHeartbeatRequest)[-1].member_epoch == -1
    bench.answer(ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse(member_epoch=-1))
    assert bench.is_closed


def test_a_close_without_answers_ends_in_time() -> None:
    """The member still says that it leaves."""
    bench = member()
    bench.close(1_000)
    bench.advance(1_000)
    assert bench.is_closed
    assert bench.sent(ShareGroupHeartbeatRequest)[-1].member_epoch == -1


@pytest.mark.parametrize("name", ["auto.offset.reset", "group.instance.id", "session.timeout.ms"])
def test_settings_of_consumers_that_share_groups_have_not_are_refused(name: str) -> None:
    """As Java's ShareConsumerConfig does."""
    with pytest.raises(ConfigError, match=f"{name} does not go with a share group"):
        ShareConsumerConfig.from_settings({name: "1"})


@given(st.dictionaries(st.integers(0, 60), st.sampled_from(AcknowledgeType), max_size=60))
def test_batches_tell_every_offset_once_and_with_its_type(
    types: dict[int, AcknowledgeType],
) -> None:
    """They ascend; a run of more than ten of one type has a batch of its own with one type."""
    acknowledgements = Acknowledgements()
    acknowledgements.types = dict(types)
    told: list[tuple[int, int]] = []
    for first, last, said in acknowledgements.batches():
        offsets = range(first, last + 1)
        assert len(said) in (1, len(offsets))
        kinds = said if len(said) > 1 else said * len(offsets)
        runs = "".join(map(str, said))
        assert len(said) == 1 or all(str(kind) * 11 not in runs for kind in range(5))
        told += zip(offsets, kinds, strict=True)
    assert told == sorted((offset, int(kind)) for offset, kind in types.items())
