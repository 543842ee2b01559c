"""Who takes what in each of Kafka's two coordinators: one table for Java's, one for Scala's.

What both do alike is in both tables; a module of the one imports none of the other's handlers.

Source: kafka trunk, GroupCoordinatorShard.java; kafka 3.9, GroupCoordinator.scala.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from coordinator_sim.coordinator.classic.join import handle_join
from coordinator_sim.coordinator.classic.membership import handle_heartbeat, handle_leave
from coordinator_sim.coordinator.classic.sync import handle_sync
from coordinator_sim.coordinator.contract import DeletedTopic
from coordinator_sim.coordinator.loading import JavaTakeover, Takeover
from coordinator_sim.coordinator.modern.consumer.classic_members import heartbeat_to_consumer_group
from coordinator_sim.coordinator.modern.consumer.heartbeat import handle_consumer_heartbeat
from coordinator_sim.coordinator.modern.share.alter_offsets import alter_share_offsets
from coordinator_sim.coordinator.modern.share.delete_offsets import delete_share_offsets
from coordinator_sim.coordinator.modern.share.heartbeat import handle_share_heartbeat
from coordinator_sim.coordinator.offsets.commits import fetch_group, handle_commit
from coordinator_sim.coordinator.offsets.fetch import FetchGroup
from coordinator_sim.coordinator.offsets.offset_deletion import delete_topics, handle_offset_delete
from coordinator_sim.coordinator.offsets.transactions import handle_complete, handle_txn_commit
from coordinator_sim.coordinator.runtime import Effect, Parked, Partition, Runtime
from coordinator_sim.coordinator.scala.commits import (
    scala_commit,
    scala_fetch_group,
    scala_txn_commit,
)
from coordinator_sim.coordinator.scala.expiry import start_expiry
from coordinator_sim.coordinator.scala.loading import ScalaTakeover
from coordinator_sim.coordinator.scala.offset_deletion import (
    scala_delete_topics,
    scala_offset_delete,
)
from coordinator_sim.coordinator.scala.transactions import scala_complete
from coordinator_sim.coordinator.streams.heartbeat import handle_streams_heartbeat
from coordinator_sim.kafka.completion import CompleteTransaction
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from coordinator_sim.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.offset_delete import OffsetDeleteRequest
from coordinator_sim.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from coordinator_sim.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

Handler = Callable[[Runtime, Partition, Any, Parked], Effect | ErrorCode | None]
"""Takes a request of one group; one that answers None has seen to its write itself."""


@dataclass(slots=True, frozen=True)
class Handlers:
    """What one coordinator does with what it is given.

    Args:
        of_group: Who takes a request of one group, by its type.
        submit: Takes what comes of such a request: a batch, an answer, or both.
        fetch_group: Reads the offsets of one group of an OffsetFetch.
        complete: Writes the marker of a transaction.
        delete_topics: Removes the offsets of deleted topics.
        takeover: Takes a partition over, and gives it up.
        start_jobs: Starts what the broker does at intervals, unless it runs already.
    """

    of_group: Mapping[type, Handler]
    submit: Callable[[Runtime, Partition, Parked, Effect], None]
    fetch_group: FetchGroup
    complete: Callable[[Runtime, Partition, CompleteTransaction, Parked], None]
    delete_topics: Callable[[Runtime, Mapping[str, DeletedTopic]], None]
    takeover: Takeover
    start_jobs: Callable[[Runtime], None]


def _handle_heartbeat(
    runtime: Runtime, partition: Partition, request: HeartbeatRequest, _parked: Parked
) -> Effect | ErrorCode:
    consumer_group = partition.consumer_group(request.group_id)
    if consumer_group is not None:
        return heartbeat_to_consumer_group(runtime, partition, consumer_group, request)
    answer = handle_heartbeat(runtime, partition.classic_group(request.group_id), request)
    return answer if isinstance(answer, ErrorCode) else Effect(response=answer)


def _handle_leave(
    runtime: Runtime, partition: Partition, request: LeaveGroupRequest, _parked: Parked
) -> Effect | ErrorCode:
    return handle_leave(runtime, partition, request)


def _submit_apart(runtime: Runtime, partition: Partition, parked: Parked, outcome: Effect) -> None:
    """Append what a request caused; its answer, if it has one already, does not wait for that.

    Source: kafka 3.9, GroupCoordinator calls its response callbacks under the group's lock and
    GroupMetadataManager.storeGroup on its own.
    """
    if outcome.records:
        runtime.submit(partition, None, outcome)
    if outcome.response is not None:
        runtime.answer(parked, outcome.response)


def _no_jobs(_runtime: Runtime) -> None:
    """Java has timers of partitions alone."""


_OF_MEMBERS: Final[dict[type, Handler]] = {
    JoinGroupRequest: handle_join,
    SyncGroupRequest: handle_sync,
    HeartbeatRequest: _handle_heartbeat,
    LeaveGroupRequest: _handle_leave,
}

_JAVA: Final = Handlers(
    of_group={
        **_OF_MEMBERS,
        OffsetCommitRequest: handle_commit,
        TxnOffsetCommitRequest: handle_txn_commit,
        OffsetDeleteRequest: handle_offset_delete,
        ConsumerGroupHeartbeatRequest: handle_consumer_heartbeat,
        ShareGroupHeartbeatRequest: handle_share_heartbeat,
        StreamsGroupHeartbeatRequest: handle_streams_heartbeat,
        AlterShareGroupOffsetsRequest: alter_share_offsets,
        DeleteShareGroupOffsetsRequest: delete_share_offsets,
    },
    submit=Runtime.submit,
    fetch_group=fetch_group,
    complete=handle_complete,
    delete_topics=delete_topics,
    takeover=JavaTakeover(),
    start_jobs=_no_jobs,
)

_SCALA: Final = Handlers(
    of_group={
        **_OF_MEMBERS,
        OffsetCommitRequest: scala_commit,
        TxnOffsetCommitRequest: scala_txn_commit,
        OffsetDeleteRequest: scala_offset_delete,
    },
    submit=_submit_apart,
    fetch_group=scala_fetch_group,
    complete=scala_complete,
    delete_topics=scala_delete_topics,
    takeover=ScalaTakeover(),
    start_jobs=start_expiry,
)


def handlers_of(profile: Profile) -> Handlers:
    """The handlers of the coordinator that a profile is of."""
    return _JAVA if profile.has_coordinator_runtime else _SCALA
