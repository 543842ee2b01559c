"""What a watch tells of members that go from groups of the consumer protocol."""

import pytest

from coordinator_sim.cli.watch import rebalance_lines
from coordinator_sim.live.watching import Ended, SeenRecord, Watching
from coordinator_sim.log.format.offsets_records import encode_record
from coordinator_sim.messages import consumer_group_records as records
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.records import LogKey, LogRecord, LogValue
from coordinator_sim.replay.causes import explain_group

NOW_MS = 1_700_000_000_000
TOPIC = bytes(15) + b"\1"
HELD = (records.TopicPartitions(topic_id=TOPIC, partitions=(0,)),)


class Group:
    """One group in a partition of the offsets topic, written batch by batch."""

    def __init__(self) -> None:
        self.watching = Watching()
        self.watching.name_topic(TOPIC, "payments")
        self._offset = 0

    def write(self, at_ms: int, *written: tuple[LogKey, LogValue | None]) -> list[Ended]:
        """Write records in one batch; return the rebalances that ended."""
        seen = []
        for key, value in written:
            pair = encode_record(LogRecord(key, value, 0))
            seen.append(SeenRecord(0, self._offset, NOW_MS + at_ms, *pair))
            self._offset += 1
        return self.watching.take(seen, is_drained=True)[1]

    def epoch(self, at_ms: int, number: int) -> list[Ended]:
        """The group's epoch and target."""
        target = records.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=number)
        return self.write(
            at_ms,
            (records.ConsumerGroupMetadataKey("g"), records.ConsumerGroupMetadataValue(number)),
            (records.ConsumerGroupTargetAssignmentMetadataKey("g"), target),
        )

    def join(self, at_ms: int, member: str, epoch: int, *, owns: bool) -> None:
        """A member that comes and reaches its target."""
        value = records.ConsumerGroupMemberMetadataValue(
            client_id=member,
            subscribed_topic_names=("payments",),
            instance_id=None,
            classic_member_metadata=None,
        )
        self.write(at_ms, (records.ConsumerGroupMemberMetadataKey("g", member), value))
        self.epoch(at_ms, epoch)
        has = records.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=epoch, assigned_partitions=HELD if owns else ()
        )
        self.write(at_ms, (records.ConsumerGroupCurrentMemberAssignmentKey("g", member), has))

    def commit(self, at_ms: int) -> None:
        """A commit of the partition."""
        value = OffsetCommitValue(offset=at_ms, commit_timestamp=NOW_MS + at_ms)
        self.write(at_ms, (OffsetCommitKey("g", "payments", 0), value))

    def gone(self, at_ms: int, member: str, epoch: int) -> Ended:
        """A member that goes; the others have what they had."""
        keys = (
            records.ConsumerGroupCurrentMemberAssignmentKey("g", member),
            records.ConsumerGroupTargetAssignmentMemberKey("g", member),
            records.ConsumerGroupMemberMetadataKey("g", member),
        )
        group = records.ConsumerGroupMetadataKey("g"), records.ConsumerGroupMetadataValue(epoch)
        self.write(at_ms, *((key, None) for key in keys), group)
        target = records.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch)
        self.write(at_ms, (records.ConsumerGroupTargetAssignmentMetadataKey("g"), target))
        has = records.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=epoch)
        key = records.ConsumerGroupCurrentMemberAssignmentKey("g", "a")
        (ended,) = self.write(at_ms + 50, (key, has))
        return ended


@pytest.mark.parametrize(
    ("silent_ms", "cause", "said", "explained"),
    [
        (900, "MEMBER_LEFT", "MEMBER_LEFT: b left", "b left"),
        # A broker may be set to a session of six seconds, and a member commit once a minute.
        (6_500, "UNKNOWN", "MEMBER_GONE: b left or failed", ""),
        (45_000, "MEMBER_FAILED", "MEMBER_FAILED: b sent no heartbeat", "b sent no heartbeat"),
    ],
)
def test_member_that_goes_left_or_failed_as_its_commits_show(
    silent_ms: int, cause: str, said: str, explained: str
) -> None:
    """Where they show neither, neither is claimed."""
    group = Group()
    group.join(0, "a", 1, owns=False)
    group.join(1_000, "b", 2, owns=True)
    for at_ms in (10_000, 70_000):
        group.commit(at_ms)

    ended = group.gone(70_000 + silent_ms, "b", 3)

    assert said in rebalance_lines(ended)[0]
    story = explain_group("g", list(ended.lines), []).rebalances[ended.position]
    assert (story.reason.value, story.because[: len(explained)]) == (cause, explained)
