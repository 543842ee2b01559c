"""DescribeGroups and ListGroups: what groups are made of, and which there are.

Both are reads of what is committed. Of a group only its existence is as of the committed position:
what it is made of is as it stands now.

Source: kafka trunk, GroupCoordinatorService.describeGroups and listGroups with
GroupMetadataManager.describeGroups and listGroups; in the Scala coordinator
GroupCoordinator.handleDescribeGroup and handleListGroups.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from coordinator_sim.coordinator.classic.group import Group, Member
from coordinator_sim.coordinator.common.timeline import LATEST
from coordinator_sim.coordinator.epoch_refusals import Refusal, group_of_type
from coordinator_sim.coordinator.modern.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.modern.share.group import ShareGroup
from coordinator_sim.coordinator.partition import AnyGroup
from coordinator_sim.coordinator.runtime import (
    Partition,
    PartitionState,
    Runtime,
    partition_error,
)
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import computed_hash_order, topic_partition_hash
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.kafka.states import GroupProtocol, GroupState
from coordinator_sim.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from coordinator_sim.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from coordinator_sim.messages.requests import Response

_NOT_FOUND_VERSION: Final = 6
_CLASSIC: Final = "classic"
NOT_READY: Final = "NotReady"
_FILTERED_NOT_READY: Final = "not_ready"
_TRIMMED: Final = "".join(chr(code) for code in range(ord(" ") + 1))


def state_name(state: GroupState, profile: Profile) -> str:
    """A state by the name that clients of that Kafka see."""
    return profile.awaiting_sync_name if state is GroupState.AWAITING_SYNC else state.value


def by_partition(runtime: Runtime, group_ids: tuple[str, ...]) -> dict[int, list[str]]:
    """Group ids by offsets partition, the partitions in the order of Java's HashMap."""
    found: dict[int, list[str]] = {}
    for group_id in group_ids:
        found.setdefault(runtime.partition_index(group_id), []).append(group_id)
    keys = (TopicPartition(OFFSETS_TOPIC, index) for index in found)
    ordered = computed_hash_order(keys, hash_of=topic_partition_hash)
    return {key.partition: found[key.partition] for key in ordered}


@dataclass(slots=True, frozen=True)
class Description:
    """The Describe API of one type of groups with epochs; it reads what is committed.

    Args:
        protocol: Of the groups.
        response: The response; `groups` has what is described.
        described: A described group.
        group_type: The groups that the API describes.
        fields: The fields of a group at a log position, beside its name, its state and its epochs.
        topics: Topics of a described group, as often as it has them.
        has_texts: Whether the error of a partition comes with its text.
        hidden_topics: Error text of a group with topics that the sender may not describe.

    Source: kafka 4.4, GroupCoordinatorService.consumerGroupDescribe, shareGroupDescribe and
    streamsGroupDescribe.
    """

    protocol: GroupProtocol
    response: Callable[..., Response]
    described: Callable[..., Any]
    group_type: type[ConsumerGroup | ShareGroup | StreamsGroup]
    fields: Callable[[Runtime, Any, Any, int], dict[str, Any]]
    topics: Callable[[Any], Iterable[str]]
    has_texts: bool = False
    hidden_topics: str = (
        "The group has described topic(s) that the client is not authorized to describe."
    )

    def answer(self, runtime: Runtime, request: Any, context: RequestContext) -> None:  # noqa: ANN401 - of its API
        """Describe groups, partition by partition; those without a name come first.

        A group that is named a thousand times is described once.
        """
        named = tuple(name for name in request.group_ids if name)
        nameless = self.described(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
        groups = [nameless] * (len(request.group_ids) - len(named))
        for index, names in by_partition(runtime, named).items():
            partition = runtime.partitions.get(index)
            found = {
                name: self._group(runtime, request, partition, name)
                for name in dict.fromkeys(names)
            }
            groups += [found[name] for name in names]
        runtime.reply(context.token, self.response(groups=tuple(groups)))

    def refusal(self, request: Any, error: ErrorCode) -> Response:  # noqa: ANN401 - of its API
        """The answer that refuses every group, in the order asked for."""
        return self.response(groups=tuple(self._refused(name, error) for name in request.group_ids))

    def _refused(self, group_id: str, error: ErrorCode) -> Any:  # noqa: ANN401 - a described group
        if not self.has_texts:
            return self.described(group_id=group_id, error_code=error)
        text = error_message(error)
        return self.described(group_id=group_id, error_code=error, error_message=text)

    def _group(
        self, runtime: Runtime, request: object, partition: Partition | None, group_id: str
    ) -> Any:  # noqa: ANN401 - a described group
        if partition is None or partition.state is not PartitionState.ACTIVE:
            return self._refused(group_id, partition_error(partition, runtime.profile))
        position = partition.high_watermark
        group = group_of_type(self.group_type, group_id, partition.group_as_of(group_id, position))
        if isinstance(group, Refusal):
            return self.described(
                group_id=group_id, error_code=group.error, error_message=group.text
            )
        epochs = group.epochs_as_of(position)
        return self.described(
            group_id=group_id,
            group_state=epochs.state.value,
            group_epoch=epochs.group_epoch,
            assignment_epoch=epochs.assignment_epoch,
            **self.fields(runtime, request, group, position),
        )


def _read_position(runtime: Runtime, partition: Partition) -> int:
    """The log position that readers see: the committed one in Java, the latest in Scala."""
    return partition.high_watermark if runtime.profile.has_coordinator_runtime else LATEST


# -- DescribeGroups ------------------------------------------------------------------------


def describe_groups(
    runtime: Runtime, request: DescribeGroupsRequest, context: RequestContext
) -> None:
    """Describe groups: partition by partition, or in the order asked for."""
    names = request.groups
    if runtime.profile.answers_by_partition:
        batches = by_partition(runtime, names)
        names = tuple(name for batch in batches.values() for name in batch)
    found = {name: _describe(runtime, name, context) for name in dict.fromkeys(names)}
    groups = tuple(found[name] for name in names)
    runtime.reply(context.token, DescribeGroupsResponse(groups=groups))


def _describe(runtime: Runtime, group_id: str, context: RequestContext) -> DescribedGroup:
    partition = runtime.partitions.get(runtime.partition_index(group_id))
    if partition is None or partition.state is not PartitionState.ACTIVE:
        error = partition_error(partition, runtime.profile)
        return DescribedGroup(group_id=group_id, error_code=error)
    group = partition.group_as_of(group_id, _read_position(runtime, partition))
    if not isinstance(group, Group):
        what = "not found." if group is None else "is not a classic group."
        return _not_found(group_id, context.api_version, f"Group {group_id} {what}")
    return DescribedGroup(
        group_id=group_id,
        group_state=state_name(group.state, runtime.profile),
        protocol_type=group.protocol_type or "",
        protocol_data=group.protocol_name or "" if group.state is GroupState.STABLE else "",
        members=tuple(_describe_member(runtime, group, member) for member in group.ordered()),
    )


def _not_found(group_id: str, api_version: int, text: str) -> DescribedGroup:
    """An unknown group is Dead; from version 6 on that is an error too. Source: KIP-1043."""
    if api_version < _NOT_FOUND_VERSION:
        return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    return DescribedGroup(
        group_id=group_id,
        group_state=GroupState.DEAD.value,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=text,
    )


def _describe_member(runtime: Runtime, group: Group, member: Member) -> DescribedGroupMember:
    """Source: ClassicGroupMember.describe and describeNoMetadata; MemberMetadata.summary."""
    is_stable = group.state is GroupState.STABLE
    # QUIRK: Java shows the assignment of the generation before while a rebalance is under way.
    shows_assignment = is_stable or runtime.profile.describes_old_assignment
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
        member_assignment=member.assignment if shows_assignment else b"",
    )


# -- ListGroups ----------------------------------------------------------------------------


def list_groups(runtime: Runtime, request: ListGroupsRequest, context: RequestContext) -> None:
    """List the groups of this broker that pass the filters."""
    is_loading = any(
        partition.state is PartitionState.LOADING for partition in runtime.partitions.values()
    )
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NONE
    if is_loading and runtime.profile.loading_hides_groups:
        runtime.reply(context.token, ListGroupsResponse(error_code=error))
        return
    passes = _filter_of(request, runtime.profile)
    listed = tuple(group for group in _all_groups(runtime) if passes(group))
    runtime.reply(context.token, ListGroupsResponse(error_code=error, groups=listed))


def _all_groups(runtime: Runtime) -> list[ListedGroup]:
    """Every group of this broker in the order of Kafka's tables."""
    profile = runtime.profile
    if not profile.answers_by_partition:
        return [_listed(profile, group, LATEST) for group in runtime.groups_in_cache_order()]
    return [
        _listed(profile, group, partition.high_watermark)
        for partition in runtime.active()
        for group in partition.groups_as_of(partition.high_watermark)
    ]


def state_of(runtime: Runtime, group_id: str) -> str | None:
    """The state of a group, of one that is not classic the committed one; None if not led here."""
    partition = runtime.partitions.get(runtime.partition_index(group_id))
    if partition is None or partition.state is not PartitionState.ACTIVE:
        return None
    group = runtime.groups.get(group_id)
    if group is not None:
        return group.state.value
    other = partition.group_as_of(group_id, partition.high_watermark)
    return (
        None
        if other is None
        else _listed(runtime.profile, other, partition.high_watermark).group_state
    )


def _listed(profile: Profile, group: AnyGroup, position: int) -> ListedGroup:
    """A group as it is listed; of one that is not classic the committed state."""
    if not isinstance(group, Group):
        kind = group.group_type
        return ListedGroup(
            group_id=group.group_id,
            protocol_type=kind,
            group_state=group.epochs_as_of(position).state.value,
            group_type=kind,
        )
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=state_name(group.state, profile),
        group_type=_CLASSIC,
    )


def _filter_of(request: ListGroupsRequest, profile: Profile) -> Callable[[ListedGroup], bool]:
    """Whether the filters let a group through; a filter that names nothing known lets none."""
    types = {name.lower() for name in request.types_filter}
    is_exact = profile.state_filter_is_exact
    wanted = frozenset(_wanted_state(state, profile) for state in request.states_filter)

    def passes(group: ListedGroup) -> bool:
        if types and group.group_type not in types:
            return False
        name = group.group_state
        if name == NOT_READY:
            # QUIRK: a filter finds this state by another name than the one that is told.
            name = _FILTERED_NOT_READY
        return not request.states_filter or (name if is_exact else name.lower()) in wanted

    return passes


def _wanted_state(state: str, profile: Profile) -> str:
    """A state that a filter names, as it is compared with that of a group."""
    if profile.state_filter_is_exact:
        return state
    # Source: String.trim, which takes away everything up to the blank.
    return state.lower().strip(_TRIMMED) if profile.state_filter_is_trimmed else state.lower()
