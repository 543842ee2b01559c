"""Requests of a group coordinator to the share coordinator, and their responses.

Plain data. A call is part of a verb's result; the driver executes it and passes the response to
`GroupCoordinator.persister_answered`.

Source: kafka 4.4, server-common/.../share/persister/Persister.java and its parameters and results.
"""

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode


class PartitionStart(Struct, frozen=True, gc=False):
    """Where the state of one partition is to begin.

    Args:
        partition: Its number.
        state_epoch: The group's epoch.
        start_offset: The first offset that is delivered; -1 leaves it to the group's settings.
    """

    partition: int
    state_epoch: int
    start_offset: int


class InitializeState(Struct, frozen=True, gc=False):
    """Begin to keep the state of these partitions, by topic id."""

    group_id: str
    topics: tuple[tuple[bytes, tuple[PartitionStart, ...]], ...]

    def partitions_by_topic(self) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
        """The partitions, by topic id."""
        return tuple(
            (topic_id, tuple(start.partition for start in starts))
            for topic_id, starts in self.topics
        )


class DeleteState(Struct, frozen=True, gc=False):
    """Forget the state of these partitions, by topic id."""

    group_id: str
    topics: tuple[tuple[bytes, tuple[int, ...]], ...]

    def partitions_by_topic(self) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
        """The partitions, by topic id."""
        return self.topics


class PersisterCall(Struct, frozen=True, gc=False):
    """A call to be carried out.

    Args:
        call_id: Names it in the answer.
        request: What is asked.
    """

    call_id: int
    request: InitializeState | DeleteState


class PartitionOutcome(Struct, frozen=True, gc=False):
    """What became of one partition."""

    partition: int
    error: ErrorCode = ErrorCode.NONE


class PersisterAnswer(Struct, frozen=True, gc=False):
    """How a call ended.

    Args:
        topics: What became of its partitions, by topic id.
        failure: The error of a call that failed as a whole; it has no topics.
    """

    topics: tuple[tuple[bytes, tuple[PartitionOutcome, ...]], ...] = ()
    failure: ErrorCode = ErrorCode.NONE


def answer_alike(
    request: InitializeState | DeleteState, error: ErrorCode = ErrorCode.NONE
) -> PersisterAnswer:
    """An answer with the same error code for every partition of a request."""
    return PersisterAnswer(
        tuple(
            (topic_id, tuple(PartitionOutcome(index, error) for index in partitions))
            for topic_id, partitions in request.partitions_by_topic()
        )
    )
