"""I9 over a live coordinator: replaying its log restores its state, as far as the log holds it.

For each group the log holds the last stored generation (with its members, as Stable) or that the
group was Empty, and the committed offsets. It does not hold a rebalance in progress, parked
requests, pending ids and timers. `checkers.log_replay` has the invariant over a trace.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.log.compaction import DELETE_RETENTION_MS, CleaningPass, compacted
from coordinator_sim.log.format.log_batches import decode_batches, encode_log, form_of
from coordinator_sim.log.format.record_batches import encode_record_batch
from coordinator_sim.log.format.segments import SegmentReader
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from coordinator_sim.messages.records import LogBatch

_FETCH_VERSION: Final = 9
_UNUSED_TOKEN: Final = (1 << 62) + 9
"""Far from the tokens of any driver."""


class _NoIds:
    """Source of member ids for a replay, which issues none."""

    def new_uuid(self) -> str:
        """Refuse.

        Raises:
            InvariantViolation: always.
        """
        raise InvariantViolation("a replay asked for a new member id")


def replayed(
    batches: Iterable[LogBatch], config: CoordinatorConfig, profile: Profile, now_ms: int
) -> GroupCoordinator:
    """Return a new coordinator that has loaded every partition from these batches.

    Args:
        batches: Batches in log order within each partition.
        config: Configuration of the live coordinator.
        profile: Profile of the live coordinator.
        now_ms: Instant of the load; sessions start then.
    """
    coordinator = GroupCoordinator(config, profile, ids=_NoIds())
    count = config.offsets_topic_num_partitions
    for partition in range(count):
        coordinator.begin_load(partition, 0, now_ms)
    for batch in batches:
        coordinator.replay(batch.partition, batch)
    for partition in range(count):
        coordinator.finish_load(partition, ErrorCode.NONE, now_ms)
    return coordinator


def compacted_log(
    batches: Iterable[LogBatch], profile: Profile, now_ms: int, passes: int = 2
) -> list[LogBatch]:
    """Return the batches that the log cleaner leaves, by partition, through their bytes.

    Args:
        batches: Batches in log order within each partition.
        profile: Profile of the bytes' format.
        now_ms: Instant of the first pass.
        passes: Number of passes, each after the delete retention of the previous one's tombstones.
    """
    logs: dict[int, list[LogBatch]] = {}
    for batch in batches:
        logs.setdefault(batch.partition, []).append(batch)
    form = form_of(profile)
    cleaned: list[LogBatch] = []
    for partition, log in logs.items():
        written = b"".join(encoded.data for encoded in encode_log(log, form))
        stored = [batch.decoded() for batch in SegmentReader(written)]
        for turn in range(passes):
            at_ms = now_ms + turn * (DELETE_RETENTION_MS + 1)
            stored = compacted(stored, CleaningPass(now_ms=at_ms))
        left = b"".join(encode_record_batch(batch) for batch in stored)
        cleaned += decode_batches(left, partition)
    return cleaned


def differences(
    live: GroupCoordinator, loaded: GroupCoordinator, group_ids: Sequence[str], now_ms: int
) -> list[str]:
    """Return differences between a loaded and the live coordinator in logged state; ideally none.

    Args:
        live: Leads every partition of the groups; its state is not changed.
        loaded: Result of `replayed`, over the live coordinator's log.
        group_ids: The groups to compare.
        now_ms: Not before the last verb of either.
    """
    found: list[str] = []
    for group_id in group_ids:
        found += _group_differences(group_id, live.group(group_id), loaded.group(group_id))
        for stable in (False, True):
            ours, theirs = (
                _offsets_of(one, group_id, now_ms, require_stable=stable) for one in (live, loaded)
            )
            if ours != theirs:
                found.append(f"{group_id}: offsets {ours} were loaded as {theirs}")
    return found


def _group_differences(group_id: str, live: Group | None, loaded: Group | None) -> list[str]:
    if live is None or loaded is None:
        # A group may exist in memory before its first generation is stored.
        is_unstored = live is not None and (
            live.generation_id == 0 or live.state not in (GroupState.STABLE, GroupState.EMPTY)
        )
        same = live is loaded or is_unstored
        return [] if same else [f"{group_id}: {live and live.state} was loaded as {loaded}"]
    if live.state not in (GroupState.STABLE, GroupState.EMPTY):
        # The log holds the generation before the rebalance in progress, or the one being stored.
        if loaded.generation_id <= live.generation_id:
            return []
        return [f"{group_id}: generation {live.generation_id}, loaded {loaded.generation_id}"]
    ours, theirs = _projected(live), _projected(loaded)
    return [] if ours == theirs else [f"{group_id}: {ours} was loaded as {theirs}"]


def _projected(group: Group) -> tuple[object, ...]:
    """Return the part of a group at rest that the log holds."""
    members = [
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.metadata(group.protocol_name),
            member.assignment,
        )
        for member in sorted(group.members.values(), key=lambda member: member.member_id)
    ]
    # 0.10.2 stores the protocol type, but its loads do not read it.
    is_forgotten = not members and group.runtime.profile.empty_load_forgets_protocol_type
    return (
        group.state.value,
        group.generation_id,
        "" if is_forgotten else group.protocol_type or "",
        group.protocol_name,
        group.leader_id if members else None,
        tuple(members),
    )


def _offsets_of(
    coordinator: GroupCoordinator, group_id: str, now_ms: int, *, require_stable: bool
) -> dict[tuple[str, int], tuple[int, int, str | None, ErrorCode]]:
    """Return the answer to a fetch of all offsets: offset, leader epoch, metadata, error."""
    wanted = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    request = OffsetFetchRequest(groups=(wanted,), require_stable=require_stable)
    context = RequestContext(token=_UNUSED_TOKEN, api_version=_FETCH_VERSION)
    return {
        (topic.name, one.partition_index): (
            one.committed_offset,
            one.committed_leader_epoch,
            one.metadata,
            one.error_code,
        )
        for reply in coordinator.handle(request, context, now_ms).replies
        if isinstance(reply.response, OffsetFetchResponse)
        for group in reply.response.groups
        for topic in group.topics
        for one in topic.partitions
    }
