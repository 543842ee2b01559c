"""Bugs that Kafka's consumers and assignors had, as faults of our ports of them."""

from typing import Final

from coordinator_sim_conformance.museum.exhibit import Exhibit

_CLIENTS: Final = "coordinator_sim.clients."
_ASSIGNORS: Final = "coordinator_sim.assignors."

CLIENT_BUGS: Final = (
    Exhibit(
        "KAFKA-8104",
        "A join goes on with a generation that the heartbeat thread has reset.",
        _CLIENTS + "abstract_coordinator",
        "        elif self._generation.is_reset or self._state is not MemberState.STABLE:\n",
        "        elif False:\n",
        "scenario frozen-while-joining",
    ),
    Exhibit(
        "KAFKA-9140",
        "An assignment is taken although the member has left the join it belongs to.",
        _CLIENTS + "abstract_coordinator",
        (
            "        elif generation.is_reset or "
            "self._state is not MemberState.COMPLETING_REBALANCE:\n"
        ),
        "        elif False:\n",
        "C-SYNC-08",
    ),
    Exhibit(
        "KAFKA-9823",
        "The answer to a heartbeat of an old generation resets the present one.",
        _CLIENTS + "heartbeat_thread",
        "        if not self._generation_unchanged(pending.generation):\n",
        "        if False:\n",
        "scenario late-heartbeat-answer",
    ),
    Exhibit(
        "KAFKA-9815",
        "A JoinGroup that failed is forgotten when its reason is gone.",
        _CLIENTS + "abstract_coordinator",
        "        if error != MEMBER_ID_REQUIRED:\n",
        "        self._rejoin_needed = error == MEMBER_ID_REQUIRED\n        if False:\n",
        "scenario subscription-reverted",
    ),
    Exhibit(
        "KAFKA-13214",
        "A member whose coordinator is gone in the middle of a join forgets its id.",
        _CLIENTS + "abstract_coordinator",
        '            self._request_rejoin(f"rebalance failed due to {error}")\n',
        (
            '            self._request_rejoin(f"rebalance failed due to {error}")\n'
            '            self._set_generation(Generation(NO_GENERATION_ID, "", None))\n'
        ),
        "scenario coordinator-lost-in-join",
    ),
    Exhibit(
        "KAFKA-14024",
        "Before a rejoin a commit is waited for without end.",
        _CLIENTS + "consumer_coordinator",
        "        if future is not None and now_ms < self._join_prepare_deadline_ms:\n",
        "        if future is not None:\n",
        "scenario stuck-commit",
    ),
    Exhibit(
        "KAFKA-8487",
        "A commit that is refused because of a rebalance resets the member.",
        _CLIENTS + "offset_commits",
        (
            "                self.request_rejoin("
            '"offset commit failed since group is already rebalancing")\n'
        ),
        '                self._reset_state_and_rejoin("", reset_member_id=True)\n',
        "C-COMMIT-03",
    ),
    Exhibit(
        "KAFKA-7126",
        "Who rejoins does not look first whether a new topic matches its pattern.",
        _CLIENTS + "consumer_coordinator",
        "            self._poll_pattern(now_ms)\n",
        "            self._poll_group(now_ms)\n",
        "scenario pattern-storm",
    ),
    Exhibit(
        "KAFKA-12983",
        "A member that lost its generation rejoins without giving its partitions up.",
        _CLIENTS + "heartbeat_thread",
        (
            "        self.request_rejoin(reason)\n"
            "        self._needs_join_prepare = True\n"
            "        self._activity = True\n"
        ),
        "        self.request_rejoin(reason)\n        self._activity = True\n",
        "scenario removed-while-joining",
    ),
    Exhibit(
        "KAFKA-13419",
        "A claim to a partition counts whatever its generation.",
        _ASSIGNORS + "sticky_ownership",
        "        if generation_id < earlier_generation_id:\n            return\n",
        "",
        "newest-claim-wins",
    ),
    Exhibit(
        "KAFKA-13891",
        "A subscription does not say in which generation its partitions were owned.",
        _CLIENTS + "consumer_coordinator",
        "                        generation_id=self._generation.generation_id,\n",
        "                        generation_id=-1,\n",
        "scenario subscription-reverted",
    ),
    Exhibit(
        "KAFKA-14382",
        "Every cooperative assignment is followed by another rebalance.",
        _CLIENTS + "consumer_coordinator",
        "        if self._protocol is RebalanceProtocol.COOPERATIVE and revoked:\n",
        "        if self._protocol is RebalanceProtocol.COOPERATIVE:\n",
        "scenario slow-follower-sync",
    ),
    Exhibit(
        "KAFKA-13435-client",
        "A static leader that need not assign does not watch its topics either.",
        _CLIENTS + "consumer_leader",
        (
            "            self._assignment_snapshot = self._metadata_snapshot\n"
            "            self._send_sync_group({}, future, now_ms)\n"
        ),
        "            self._send_sync_group({}, future, now_ms)\n",
        "scenario static-leader-restart",
    ),
    Exhibit(
        "KAFKA-10870",
        "A JoinGroup that the coordinator could not store is an unexpected error.",
        _CLIENTS + "abstract_coordinator",
        (
            "            case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS | "
            "ErrorCode.REBALANCE_IN_PROGRESS:\n"
        ),
        "            case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:\n",
        "C-JOIN-09",
    ),
    Exhibit(
        "KAFKA-7026",
        "The claim of a member that comes back with an old assignment counts as much as any.",
        _ASSIGNORS + "sticky_ownership",
        "        generation_id = "
        "DEFAULT_GENERATION if data.generation_id is None else data.generation_id\n",
        "        generation_id = DEFAULT_GENERATION\n",
        "newest-user-data-wins",
    ),
    Exhibit(
        "KAFKA-14639",
        "Of two claims to a partition the older one holds.",
        _ASSIGNORS + "sticky_ownership",
        "        if generation_id < earlier_generation_id:\n",
        "        if generation_id > earlier_generation_id:\n",
        "newest-claim-wins",
    ),
    Exhibit(
        "KAFKA-12984",
        "Of two claims of one generation the later one holds.",
        _ASSIGNORS + "sticky_ownership",
        "        if generation_id == earlier_generation_id:\n",
        "        if False:\n",
        "doubtful-claims-are-nobodys",
    ),
    Exhibit(
        "KAFKA-15170",
        "A partition is given away in the round in which its owner must give it up.",
        _ASSIGNORS + "sticky",
        "            assignment[member_id].remove(partition)\n",
        "            pass\n",
        "rack-aware-move-is-withheld",
    ),
    Exhibit(
        "KAFKA-15106",
        "Partitions that would make nothing more even are gone through all the same.",
        _ASSIGNORS + "sticky",
        "            greatest[topic] > len(held) + 1\n",
        "            greatest[topic] > len(held)\n",
        "looks-on-only-while-it-helps",
    ),
    Exhibit(
        "librdkafka-4783",
        "Where the topics of members differ, an assignor may look for what to move without end.",
        _ASSIGNORS + "sticky",
        (
            "                if self._is_balanced():\n"
            "                    break\n"
            "                if self._improve(partition):\n"
            "                    moved = modified = True\n"
        ),
        (
            "                least, greatest = self._order.counts()\n"
            "                if least >= greatest - 1:\n"
            "                    break\n"
            "                moved = self._improve(partition) or moved\n"
            "                modified = True\n"
        ),
        "looks-on-only-while-it-helps",
    ),
)
"""In the order of the matter: joins, commits, cooperative rounds, static leaders, assignors."""
