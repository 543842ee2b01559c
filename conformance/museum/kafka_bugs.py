"""Bugs that Kafka had, by their number in Kafka's issue tracker, as faults of the core."""

from typing import Final

from coordinator_sim_conformance.museum.exhibit import Exhibit

_CORE: Final = "coordinator_sim.coordinator."

KAFKA_BUGS: Final = (
    Exhibit(
        "KAFKA-12890",
        "A leader that never sends SyncGroup holds its group in AwaitingSync for ever.",
        _CORE + "classic.join_phase",
        "    if runtime.profile.sync_timeout:\n",
        "    if False:\n",
        "PSYN-001 as 4.4",
    ),
    Exhibit(
        "KAFKA-9752",
        "A member admitted by a rebalance stays new, so that its session never runs.",
        _CORE + "classic.join_phase",
        "        member.is_new = False\n",
        "        member.is_new = True\n",
        "REB-008 as 4.4",
    ),
    Exhibit(
        "KAFKA-9232",
        "The five minutes of a new member go on after it was admitted.",
        _CORE + "classic.join_phase",
        ("        start_session(runtime, group, member)\n        member.is_new = False\n"),
        "        member.is_new = False\n",
        "REB-011 as 4.4",
    ),
    Exhibit(
        "KAFKA-7610",
        "A new member's JoinGroup is parked without limit.",
        _CORE + "classic.join_phase",
        "    if timeout_ms:\n",
        "    if False:\n",
        "INIT-014 as 4.4",
    ),
    Exhibit(
        "KAFKA-7824",
        "A client without an id becomes a member at once, at every version.",
        _CORE + "classic.join",
        "    if join.context.api_version >= _KNOWN_ID_VERSION and runtime.profile.member_id_required:\n",
        "    if False:\n",
        "JOIN-029 as 4.4",
    ),
    Exhibit(
        "KAFKA-7909",
        "The join phase ends although a handed-out id is outstanding.",
        _CORE + "classic.group",
        "        return len(self.members) == self.awaiting_join_count and not self.pending_members\n",
        "        return len(self.members) == self.awaiting_join_count\n",
        "MID-007 as 4.4",
    ),
    Exhibit(
        "KAFKA-9844",
        "While a group prepares, its size limit is not looked at.",
        _CORE + "classic.join",
        "return parked_already or group.awaiting_join_count < limit\n",
        "return True\n",
        "MAX-002 as 4.4",
    ),
    Exhibit(
        "KAFKA-9885",
        "A loaded group over its limit does not rebalance.",
        _CORE + "loading",
        "len(group.members) > limit:\n",
        "False:\n",
        "LOAD-006 as 4.4",
    ),
    Exhibit(
        "KAFKA-8220",
        "The rebalance timeout removes static members too.",
        _CORE + "classic.join_phase",
        "        if member.awaiting_join is None and member.group_instance_id is None\n",
        "        if member.awaiting_join is None\n",
        "PSYN-006 as 4.4",
    ),
    Exhibit(
        "KAFKA-8500",
        "Of two processes with one instance id, the first is not told that it is fenced.",
        _CORE + "classic.static_members",
        (
            "    complete_join_of(\n"
            "        runtime,\n"
            "        group,\n"
            "        old,\n"
            "        JoinGroupResponse(error_code=fenced, member_id=old.member_id, protocol_name=None),\n"
            "    )\n"
        ),
        "    old.awaiting_join = None\n",
        "STAT-024 as 4.4",
    ),
    Exhibit(
        "KAFKA-8715",
        "The id of a static member is made of the time of its group's state, which may be unknown.",
        _CORE + "classic.join",
        "    if instance_id is not None:\n        existing_id",
        (
            "    if instance_id is not None:\n"
            "        if group.current_state_timestamp_ms == -1:\n"
            "            return ErrorCode.UNKNOWN_SERVER_ERROR\n"
            '        member_id = f"{instance_id}-{group.current_state_timestamp_ms}"\n'
            "        existing_id"
        ),
        "STAT-006.loaded as 4.4",
    ),
    Exhibit(
        "KAFKA-9801",
        "A static member that comes back in the sync phase starts no rebalance.",
        _CORE + "classic.static_members",
        "        return prepare_rebalance(runtime, group, RebalanceReason.METADATA_CHANGED, text)\n",
        "        return maybe_complete_join(runtime, group)\n",
        "STAT-004 as 4.4",
    ),
    Exhibit(
        "KAFKA-10284",
        "The new id of a static member is not stored.",
        _CORE + "classic.static_members",
        "                records=(group_record(runtime, group, group.as_record(assignments)),),\n",
        "                records=(),\n",
        "STAT-006 as 4.4",
    ),
    Exhibit(
        "KAFKA-14009",
        "A member that rejoins keeps the timeouts of its first request.",
        _CORE + "classic.join_phase",
        "    if runtime.profile.refreshes_timeouts:\n",
        "    if False:\n",
        "JOIN-039 as 4.4",
    ),
    Exhibit(
        "KAFKA-13435",
        "A static leader that comes back is told to assign again.",
        _CORE + "classic.static_members",
        '            leader, skips = group.leader_id or "", is_leader\n',
        '            leader, skips = group.leader_id or "", False\n',
        "STAT-006 as 4.4",
    ),
    Exhibit(
        "KAFKA-14201",
        "A commit without generation to an Empty group is refused when it names an id.",
        _CORE + "offsets.commit_validation",
        "    if generation_id < 0 and group.state is EMPTY:\n",
        "    if generation_id < 0 and group.state is EMPTY and request.group_instance_id is None:\n",
        "COMMIT-013 as 3.9",
    ),
    Exhibit(
        "KAFKA-13636",
        "Offsets expire while a group of consumers rebalances.",
        _CORE + "offsets.expiry",
        "    return is_known and group.state is GroupState.STABLE\n",
        "    return is_known\n",
        "EXPIRE-006 as 4.4",
    ),
    Exhibit(
        "KAFKA-8069",
        "A stored offset of version 1 that names no end is loaded as expired.",
        _CORE + "scala.group_offsets",
        "                of_group[place] = (value, batch.base_offset)\n            else:\n",
        (
            "                if record.value_version == 1 and value.expire_timestamp == -1:\n"
            "                    value = OffsetCommitValue(value.offset, expire_timestamp=0)\n"
            "                of_group[place] = (value, batch.base_offset)\n            else:\n"
        ),
        "EXPIRE-008.stored as 3.9",
    ),
    Exhibit(
        "KAFKA-7403",
        "A commit without retention fails where records must say when an offset expires.",
        _CORE + "scala.commits",
        "    values = _values(runtime, request.topics, request.retention_time_ms)\n",
        (
            "    is_open = request.retention_time_ms == NO_RETENTION\n"
            "    if is_open and runtime.profile.offsets_carry_expiry:\n"
            "        runtime.refuse(parked, ErrorCode.UNKNOWN_SERVER_ERROR)\n"
            "        return\n"
            "    values = _values(runtime, request.topics, request.retention_time_ms)\n"
        ),
        "COMMIT-001 as 0.10.2",
    ),
    Exhibit(
        "KAFKA-10401",
        "The time at which a group became Empty is not stored.",
        _CORE + "classic.group",
        "            current_state_timestamp=self.current_state_timestamp_ms,\n",
        "            current_state_timestamp=-1,\n",
        "EXPIRE-RELOADED as 4.4",
    ),
    Exhibit(
        "KAFKA-4472",
        "A long retention overflows 32 bits of milliseconds.",
        _CORE + "offsets.expiry",
        "    return now_ms - base_ms >= runtime.config.offsets_retention_ms\n",
        (
            "    retention_ms = runtime.config.offsets_retention_ms\n"
            "    return now_ms - base_ms >= (retention_ms + (1 << 31)) % (1 << 32) - (1 << 31)\n"
        ),
        "EXPIRE-017 as 4.4",
    ),
    Exhibit(
        "KAFKA-5247",
        "At the end of a transaction its offsets win over newer ones.",
        _CORE + "offsets.offset_store",
        "            if existing is None or stored[1] > existing[1]:\n",
        "            if True:\n",
        "OLOAD-008 as 4.4",
    ),
    Exhibit(
        "KAFKA-17507",
        "The end of a transaction is answered before its marker is committed.",
        _CORE + "offsets.transactions",
        "    runtime.submit(partition, parked, marker_effect(request))\n",
        (
            "    runtime.answer(parked, TransactionCompleted())\n"
            "    runtime.submit(partition, None, marker_effect(request))\n"
        ),
        "TXN-001.held as 4.4",
    ),
    Exhibit(
        "KAFKA-10614",
        "A resignation that is delivered late unloads the newer leadership.",
        _CORE + "coordinator",
        "        if leader_epoch is None or self._is_newer(part, leader_epoch):\n",
        "        if True:\n",
        "LOG-EPOCH as 4.4",
    ),
    Exhibit(
        "KAFKA-16118",
        "A partition whose replica is deleted, which names no epoch, is not unloaded.",
        _CORE + "coordinator",
        "        if leader_epoch is None or self._is_newer(part, leader_epoch):\n",
        "        if leader_epoch is not None and self._is_newer(part, leader_epoch):\n",
        "LOAD-007 as 4.4",
    ),
    Exhibit(
        "KAFKA-16030",
        "A partition that goes offline while it is loaded is opened all the same.",
        _CORE + "loading",
        "    if error is not ErrorCode.NONE:\n        _fail_load",
        "    if error is None:\n        _fail_load",
        "OLOAD-012 as 4.4",
    ),
    Exhibit(
        "KAFKA-5600",
        "Of two records of a group, a load keeps the first.",
        _CORE + "loading",
        "    group = Group(runtime, group_id, partition.index)\n    group.restore(value)\n",
        (
            "    if group_id in partition.groups:\n"
            "        return\n"
            "    group = Group(runtime, group_id, partition.index)\n    group.restore(value)\n"
        ),
        "LOAD-004 as 4.4",
    ),
    Exhibit(
        "KAFKA-4704",
        "A load fails where offsets are stored for the id of a group that was removed.",
        _CORE + "loading",
        ("                partition.remove_group(key.group)\n        elif not"),
        (
            "                partition.remove_group(key.group)\n"
            "                partition.uncommitted_groups.append(key.group)\n"
            "        elif (\n"
            "            value is not None\n"
            "            and key.group in partition.uncommitted_groups\n"
            "            and key.group not in partition.groups\n"
            "        ):\n"
            "            partition.uncommitted_groups.clear()\n"
            "            return _fail_load(runtime, partition, ErrorCode.UNKNOWN_SERVER_ERROR)\n"
            "        elif not"
        ),
        "OLOAD-005.offsets as 4.4",
    ),
    Exhibit(
        "KAFKA-17306",
        "A load fails at the tombstone of a group that nothing else in the log tells of.",
        _CORE + "loading",
        ("            else:\n                partition.remove_group(key.group)\n"),
        (
            "            elif follows and key.group not in partition.groups:\n"
            "                return _fail_load(runtime, partition, ErrorCode.UNKNOWN_SERVER_ERROR)\n"
            "            else:\n"
            "                partition.remove_group(key.group)\n"
        ),
        "OLOAD-005.unknown as 4.4",
    ),
    Exhibit(
        "KAFKA-6287",
        "A group that only stored offsets is forgotten by a load.",
        _CORE + "loading",
        "            partition.put_group(Group(runtime, key.group, partition.index))\n",
        "            pass\n",
        "LOG-KEPT as 4.4",
    ),
    Exhibit(
        "KAFKA-3590",
        "Too few replicas is passed on as it is.",
        _CORE + "runtime",
        (
            "_METADATA_ERRORS: Final = {\n"
            "    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,\n"
            "    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,\n"
        ),
        (
            "_METADATA_ERRORS: Final = {\n"
            "    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,\n"
        ),
        "SYNC-026 as 4.4",
    ),
    Exhibit(
        "KAFKA-8386",
        "A Dead group says that the member is unknown.",
        _CORE + "classic.membership",
        ("    if state is DEAD:\n        return dead_error(runtime.profile)\n"),
        ("    if state is DEAD:\n        return ErrorCode.UNKNOWN_MEMBER_ID\n"),
        "HB-010 as 4.4",
    ),
    Exhibit(
        "KAFKA-7196",
        "The session of a member that did not rejoin in time runs on, and rebalances at its end.",
        "coordinator_sim.kafka.switches",
        '        before("2.1", "stale_session_rebalances",\n',
        '        before("9.9", "stale_session_rebalances",\n',
        "REB-016 as 4.4",
    ),
    Exhibit(
        "KAFKA-6005",
        "A first JoinGroup without protocols is let in.",
        _CORE + "classic.group",
        "            return bool(protocol_type) and bool(protocols)\n",
        "            return True\n",
        "JOIN-012 as 4.4",
    ),
    Exhibit(
        "KAFKA-6773",
        "The empty group id is let into JoinGroup.",
        _CORE + "coordinator",
        "    has_bad_name = not request.group_id and not isinstance(request, nameless)\n",
        "    has_bad_name = request.group_id is None\n",
        "JOIN-GROUP-ID as 4.4",
    ),
    Exhibit(
        "KAFKA-4925",
        "The first join into an Empty group does not wait for more.",
        _CORE + "classic.join_phase",
        (
            "        delay_ms = runtime.config.group_initial_rebalance_delay_ms\n"
            "        remaining_ms"
        ),
        ("        delay_ms = 0\n        remaining_ms"),
        "JOIN-001 as 4.4",
    ),
    Exhibit(
        "KAFKA-10134",
        "A heartbeat in the sync phase is told to rejoin.",
        _CORE + "classic.membership",
        "    return _HEARTBEAT_REBALANCE if state is PREPARING_REBALANCE else HEARTBEAT_OK\n",
        "    return HEARTBEAT_OK if state is STABLE else _HEARTBEAT_REBALANCE\n",
        "HB-006 as 4.4",
    ),
    Exhibit(
        "KAFKA-16371",
        "An offset whose metadata is too long is stored with the others.",
        _CORE + "offsets.offset_records",
        (
            "                    OffsetCommitResponsePartition(index, ErrorCode.OFFSET_METADATA_TOO_LARGE)\n"
            "                )\n"
            "                continue\n"
        ),
        (
            "                    OffsetCommitResponsePartition(index, ErrorCode.OFFSET_METADATA_TOO_LARGE)\n"
            "                )\n"
        ),
        "LOG-NEW-SYNC as 4.4",
    ),
    Exhibit(
        "KAFKA-17267",
        "A require-stable fetch that is not committed in time passes the error on.",
        _CORE + "offsets.fetch",
        "error_code=fetch_error(error)",
        "error_code=error",
        "FETCH-011 as 4.4",
    ),
    Exhibit(
        "KAFKA-15647",
        "An OffsetFetch that is refused as a whole is answered without the error.",
        _CORE + "inactive",
        "OffsetFetchResponseGroup(group_id=g.group_id, error_code=UNAVAILABLE)",
        "OffsetFetchResponseGroup(group_id=g.group_id)",
        "LOAD-INACTIVE as 4.4",
    ),
    Exhibit(
        "KoP-380",
        "Whether the rest has joined is not looked at when a member leaves a join phase.",
        _CORE + "classic.membership",
        "    return maybe_complete_join(runtime, group)\n\n\ndef _leave_one_by_one",
        "    return NO_EFFECT\n\n\ndef _leave_one_by_one",
        "LEAVE-009 as 4.4",
    ),
)
"""In the order of the matter: joins, static members, offsets, the log."""
