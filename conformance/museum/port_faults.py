"""What a port of the coordinator gets wrong, as faults of the core."""

from typing import Final

from coordinator_sim_conformance.museum.exhibit import Exhibit

_CORE: Final = "coordinator_sim.coordinator."

PORT_FAULTS: Final = (
    Exhibit(
        "tombstone-takes-all",
        "At a load, the tombstone of one group takes the offsets of every group away.",
        _CORE + "loading",
        "                partition.remove_group(key.group)\n",
        (
            "                partition.remove_group(key.group)\n"
            "                partition.offsets = type(partition.offsets)()\n"
        ),
        "OLOAD-005.before as 4.4",
    ),
    Exhibit(
        "generation-stands-still",
        "A completed join phase does not count the generation up.",
        _CORE + "classic.group",
        "        self.generation_id += 1\n",
        "        self.generation_id += 0\n",
        "JOIN-001 as 4.4",
    ),
    Exhibit(
        "followers-see-members",
        "Every member is told of all members, as the leader is.",
        _CORE + "classic.join_phase",
        "with_members=member_id == leader)",
        "with_members=True)",
        "JOIN-034 as 4.4",
    ),
    Exhibit(
        "heartbeat-keeps-nobody-alive",
        "A heartbeat does not restart the session.",
        _CORE + "classic.membership",
        ("    start_session(runtime, group, member)\n    return _HEARTBEAT_REBALANCE"),
        "    return _HEARTBEAT_REBALANCE",
        "REB-006 as 4.4",
    ),
    Exhibit(
        "commit-is-no-heartbeat",
        "An accepted commit does not restart the session.",
        _CORE + "offsets.commit_validation",
        "    start_session(runtime, group, member)\n",
        "",
        "HB-015 as 4.4",
    ),
    Exhibit(
        "any-generation-syncs",
        "SyncGroup of another generation is let through.",
        _CORE + "classic.sync",
        (
            "    if request.generation_id != group.generation_id:\n"
            "        return ErrorCode.ILLEGAL_GENERATION\n"
        ),
        (
            "    if request.generation_id > group.generation_id:\n"
            "        return ErrorCode.ILLEGAL_GENERATION\n"
        ),
        "SYNC-OLD-GENERATION as 4.4",
    ),
    Exhibit(
        "any-generation-commits",
        "A commit of an old generation is accepted.",
        _CORE + "offsets.commit_validation",
        (
            "    if request.generation_id_or_member_epoch != group.generation_id:\n"
            "        return ErrorCode.ILLEGAL_GENERATION\n"
            "    if group.state is AWAITING_SYNC:\n"
        ),
        "    if group.state is AWAITING_SYNC:\n",
        "COMMIT-007 as 4.4",
    ),
    Exhibit(
        "commit-in-the-sync-phase",
        "A commit in the sync phase is accepted.",
        _CORE + "offsets.commit_validation",
        ("    if group.state is AWAITING_SYNC:\n        return ErrorCode.REBALANCE_IN_PROGRESS\n"),
        ("    if group.state is DEAD:\n        return ErrorCode.REBALANCE_IN_PROGRESS\n"),
        "COMMIT-009 as 4.4",
    ),
    Exhibit(
        "follower-assigns",
        "A follower's SyncGroup is stored as the leader's is.",
        _CORE + "classic.sync",
        "        if group.leader_id == member.member_id:\n",
        "        if True:\n",
        "JOIN-025 as 4.4",
    ),
    Exhibit(
        "old-assignment-survives",
        "A member left out of the leader's assignment keeps its old one.",
        _CORE + "classic.sync",
        '            member.assignment = self.assignments.get(member.member_id, b"")\n',
        "            member.assignment = self.assignments.get(member.member_id, member.assignment)\n",
        "SYNC-LEFT-OUT as 4.4",
    ),
    Exhibit(
        "assignment-after-moving-on",
        "An assignment stored too late is handed out all the same.",
        _CORE + "classic.sync",
        ("        if group.generation_id != self.request.generation_id:\n            return\n"),
        ("        if group.generation_id < self.request.generation_id:\n            return\n"),
        "LOG-SYNC-GENERATION as 4.4",
    ),
    Exhibit(
        "unsynced-stay",
        "The sync timeout rebalances, but removes nobody.",
        _CORE + "classic.membership",
        "    group.remove_all(evicted)\n",
        "    evicted.clear()\n",
        "PSYN-001 as 4.4",
    ),
    Exhibit(
        "leader-rejoin-is-repeated",
        "A leader that rejoins a Stable group unchanged starts no rebalance.",
        _CORE + "classic.join",
        "    if state is STABLE and is_leader:\n",
        "    if state is STABLE and is_leader and member.protocols != join.request.protocols:\n",
        "JOIN-020 as 4.4",
    ),
    Exhibit(
        "protocol-order-is-nothing",
        "Protocols in another order are taken as unchanged.",
        _CORE + "classic.join",
        "    if member.protocols != join.request.protocols:\n",
        "    if set(member.protocols) != set(join.request.protocols):\n",
        "JOIN-022 as 4.4",
    ),
    Exhibit(
        "leave-of-a-fenced-id",
        "A static member's old id may leave for the new one.",
        _CORE + "classic.group",
        (
            "            if mapped is not None and mapped != member_id:\n"
            "                return ErrorCode.FENCED_INSTANCE_ID\n"
        ),
        "            member_id = member_id if mapped is None else mapped\n",
        "LEAVE-011 as 4.4",
    ),
    Exhibit(
        "delete-of-a-living-group",
        "DeleteGroups deletes a group that has members.",
        _CORE + "deletion",
        "    return ErrorCode.NONE if group.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP\n",
        "    return ErrorCode.NONE\n",
        "DEL-001 as 4.4",
    ),
    Exhibit(
        "offsets-outlive-their-group",
        "DeleteGroups leaves the offsets.",
        _CORE + "deletion",
        "                records += tombstones\n",
        "                records += ()\n",
        "DEL-003 as 4.4",
    ),
    Exhibit(
        "subscribed-offsets-deleted",
        "OffsetDelete removes offsets of a topic that the group consumes.",
        _CORE + "offsets.offset_deletion",
        "        if group.is_subscribed_to(topic.name):\n",
        "        if False:\n",
        "DELETE-003 as 4.4",
    ),
    Exhibit(
        "subscribed-offsets-expire",
        "Offsets of a topic that the group consumes expire.",
        _CORE + "offsets.expiry",
        "        if group.is_subscribed_to(topic):\n",
        "        if False:\n",
        "EXPIRE-005 as 4.4",
    ),
    Exhibit(
        "abort-commits",
        "An aborted transaction's offsets count.",
        _CORE + "offsets.offset_store",
        ("        if not committed:\n            return\n        for key, stored in ended:\n"),
        "        for key, stored in ended:\n",
        "OLOAD-006 as 4.4",
    ),
    Exhibit(
        "open-transactions-look-stable",
        "A require-stable fetch does not see open transactions.",
        _CORE + "offsets.commits",
        "    is_open = require_stable and store.has_open_transactions(wanted.group_id)\n",
        "    is_open = False\n",
        "FETCH-006 as 4.4",
    ),
    Exhibit(
        "fetch-reads-uncommitted",
        "A plain OffsetFetch reads what is not committed.",
        _CORE + "offsets.commits",
        "    committed = LATEST if require_stable else partition.high_watermark\n",
        "    committed = LATEST\n",
        "LOG-RELOADED as 4.4",
    ),
    Exhibit(
        "answers-before-the-log",
        "An answer leaves before its record is committed.",
        _CORE + "common.runtime",
        "            self.defer(shard, write)\n        elif",
        "            self.complete(write, NO_ERROR)\n        elif",
        "LOG-DEFERRED as 4.4",
    ),
    Exhibit(
        "unload-forgets-parked",
        "An unload answers no parked JoinGroup.",
        _CORE + "loading",
        "            complete_join_of(runtime, group, member, answer)\n",
        "            member.awaiting_join = None\n",
        "LOAD-007 as 4.4",
    ),
    Exhibit(
        "load-starts-no-sessions",
        "A load starts no session.",
        _CORE + "loading",
        "        start_session(runtime, group, member)\n",
        "        member.session = None\n",
        "OLOAD-002 as 4.4",
    ),
    Exhibit(
        "explicit-retention-ignored",
        "The retention that a commit asks for is not kept.",
        _CORE + "offsets.offset_records",
        "    expires_ms = -1 if retention_ms == NO_RETENTION else now_ms + retention_ms\n",
        "    expires_ms = -1\n",
        "EXPIRE-008 as 4.4",
    ),
    Exhibit(
        "metadata-counted-in-bytes",
        "The limit of a commit's metadata counts bytes of UTF-8.",
        _CORE + "offsets.offset_records",
        '    return len(text.encode("utf-16-le", "surrogatepass")) // 2\n',
        '    return len(text.encode("utf-8", "surrogatepass"))\n',
        "COMMIT-020 as 3.9",
    ),
    Exhibit(
        "hash-mask-instead-of-abs",
        "The partition of a group masks the sign bit of its hash.",
        "coordinator_sim.kafka.partitioning",
        "    return 0 if hashed == -(1 << 31) else abs(hashed) % partition_count\n",
        "    return (hashed & 0x7FFFFFFF) % partition_count\n",
        "PART-001 as 4.4",
    ),
)
"""In the order of the matter: generations, members, commits, deletion, transactions, the log."""
