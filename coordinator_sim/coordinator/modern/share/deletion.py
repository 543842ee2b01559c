"""Requests to the share coordinator that delete share-group state before the groups.

Source: kafka 4.4, GroupCoordinatorShard.sharePartitionDeleteRequests, GroupMetadataManager
.shareGroupBuildPartitionDeleteRequest; GroupCoordinatorService.performShareGroupsDeletion and
persisterDeleteToGroupIdErrorMap.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from coordinator_sim.coordinator.modern.share.group import (
    ShareGroup,
    ShareState,
    StoredTopic,
    combined,
    named_state_value,
    state_record,
)
from coordinator_sim.coordinator.modern.share.persister import DeleteState, PersisterAnswer
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.orders.iteration_order import (
    java_filled_capacity,
    java_hash_order,
    uuid_hash,
)
from coordinator_sim.kafka.orders.java_map import JavaHashMap
from coordinator_sim.messages.records import LogRecord


@dataclass(slots=True)
class ShareDeletions:
    """What the deletion of some groups asks of the share coordinator first.

    Attributes:
        records: Note what it is asked to forget.
        requests: By group; a group without kept partitions has none.
        errors: Of groups that cannot be deleted.
    """

    records: list[LogRecord] = field(default_factory=list)
    requests: dict[str, DeleteState] = field(default_factory=dict)
    errors: dict[str, ErrorCode] = field(default_factory=dict)


def share_deletions(
    runtime: Runtime, partition: Partition, group_ids: Iterable[str]
) -> ShareDeletions:
    """Look for share groups among those to be deleted; others are passed over."""
    found = ShareDeletions()
    for group_id in group_ids:
        group = partition.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            continue
        if not group.is_empty:
            found.errors[group_id] = ErrorCode.NON_EMPTY_GROUP
            continue
        state = partition.share_states.get(group_id)
        if state is None:
            continue
        doomed = _doomed(runtime, state)
        names = {topic_id: topic.name for topic_id, topic in doomed.items()}
        found.records.append(state_record(group_id, named_state_value(ShareState(), names)))
        if doomed:
            ordered = JavaHashMap(uuid_hash, doomed.items())
            found.requests[group_id] = DeleteState(
                group_id,
                tuple(
                    (topic_id, tuple(sorted(each.partitions))) for topic_id, each in ordered.items()
                ),
            )
    return found


def _doomed(runtime: Runtime, state: ShareState) -> dict[bytes, StoredTopic]:
    """Every partition that is kept or asked for, and topics whose deletion is not known to be done.

    What is to be deleted of a topic that is gone is not asked for again.
    """
    again: dict[bytes, StoredTopic] = {}
    for topic_id in state.deleting:
        topic = runtime.topics.by_id.get(topic_id)
        if topic is not None:
            again[topic_id] = StoredTopic(topic.name, frozenset(range(topic.partition_count)))
    return combined(combined(state.initialized, state.initializing), again)


@dataclass(slots=True)
class DeletingStates:
    """Calls for several groups under way; once all are answered it is gone on.

    Args:
        refused: Errors of the groups that nothing is asked about.
        go_on: Called with all errors, by group, in the order of the answer.
    """

    refused: dict[str, ErrorCode]
    go_on: Callable[[dict[str, ErrorCode]], None]
    outcomes: dict[str, ErrorCode] = field(default_factory=dict)
    missing_count: int = 0

    def start(self, runtime: Runtime, requests: dict[str, DeleteState]) -> None:
        """Ask for each group."""
        asked = java_hash_order(requests)
        self.outcomes = dict.fromkeys(asked, NO_ERROR)
        self.missing_count = len(requests)
        if not requests:
            self.go_on(self._errors())
            return
        for group_id in asked:
            request = requests[group_id]
            runtime.ask_persister(request, _DeletingState(self, request))

    def found(self, group_id: str, error: ErrorCode) -> None:
        """One call is answered."""
        self.outcomes[group_id] = error
        self.missing_count -= 1
        if self.missing_count == 0:
            self.go_on(self._errors())

    def _errors(self) -> dict[str, ErrorCode]:
        """The groups with errors, in the order of the map that all outcomes were put into.

        QUIRK: it has as few buckets as hold them, where no group was refused before.
        """
        known = self.refused | self.outcomes
        capacity = None if self.refused or not known else java_filled_capacity(len(known))
        ordered = java_hash_order(known, capacity)
        return {name: known[name] for name in ordered if known[name] is not NO_ERROR}


@dataclass(slots=True, frozen=True)
class _DeletingState:
    """The call for one group."""

    calls: DeletingStates
    request: DeleteState

    def answered(self, answer: PersisterAnswer) -> None:
        """The last topic with an error says why the group stays.

        QUIRK: a call that fails as a whole, of topics without partitions, is taken to have worked.
        """
        has_any = any(partitions for _, partitions in self.request.topics)
        error = answer.failure if has_any else NO_ERROR
        for _, outcomes in answer.topics:
            failed = [outcome.error for outcome in outcomes if outcome.error is not NO_ERROR]
            error = failed[0] if failed else error
        self.calls.found(self.request.group_id, error)
