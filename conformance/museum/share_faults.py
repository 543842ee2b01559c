"""What share partitions get wrong (KIP-932), as faults of a broker."""

from typing import Final

from coordinator_sim_conformance.museum.exhibit import Exhibit

_SHARES: Final = "coordinator_sim.broker.shares."

SHARE_FAULTS: Final = (
    Exhibit(
        "produce-wakes-no-share-fetch",
        "A ShareFetch that waits has records when its wait is over, not when they are produced.",
        "coordinator_sim.broker.records.families",
        "            touched=cluster_events.touched,\n",
        "            touched=self.touched,\n",
        "SG-023 as 4.4",
    ),
    Exhibit(
        "deliveries-are-not-counted",
        "A record that is delivered again is delivered for the first time.",
        _SHARES + "in_flight_state",
        "        self.delivery_count += 1\n",
        "        self.delivery_count = 1\n",
        "SG-034 as 4.4",
    ),
    Exhibit(
        "one-delivery-too-many",
        "A record is delivered once more than the group allows.",
        _SHARES + "in_flight_state",
        "        if to is RecordState.AVAILABLE and self.delivery_count >= limit.max_count:\n",
        "        if to is RecordState.AVAILABLE and self.delivery_count > limit.max_count:\n",
        "SG-037 as 4.4",
    ),
    Exhibit(
        "rejected-comes-again",
        "A record that its member rejects is delivered again.",
        _SHARES + "acknowledging",
        "        is_rejected = kind == AcknowledgeType.REJECT\n",
        (
            "        is_rejected = False\n"
            "        if kind == AcknowledgeType.REJECT:\n"
            "            kind = AcknowledgeType.RELEASE\n"
        ),
        "SG-035 as 4.4",
    ),
    Exhibit(
        "timed-out-is-lost",
        "A lock that runs out archives its records in place of giving them to others.",
        _SHARES + "share_partition",
        "    to = RecordState.ARCHIVED if last < records.start_offset else RecordState.AVAILABLE\n",
        "    to = RecordState.ARCHIVED\n",
        "SG-045 as 4.4",
    ),
    Exhibit(
        "session-keeps-its-locks",
        "The end of a session leaves its records locked until their time is over.",
        _SHARES + "share_partition_manager",
        "                partition.release_acquired_records(key.member_id, now, done)\n",
        "                done(None)\n",
        "SG-054 as 4.4",
    ),
    Exhibit(
        "any-session-epoch",
        "A ShareFetch of any epoch goes on with a session, so that one sent twice counts twice.",
        _SHARES + "sessions",
        "    if session.epoch != terms.epoch:\n",
        "    if False:\n",
        "SG-051 as 4.4",
    ),
    Exhibit(
        "begins-with-acknowledgements",
        "The request that begins a share session may acknowledge records.",
        _SHARES + "sessions",
        "        if terms.acknowledges:\n",
        "        if False:\n",
        "SG-053 as 4.4",
    ),
    Exhibit(
        "forgotten-is-fetched",
        "A partition that a share session is to forget is fetched all the same.",
        _SHARES + "sessions",
        "            self.partitions.pop(partition_of(place), None)\n",
        "            pass\n",
        "SG-057 as 4.4",
    ),
    Exhibit(
        "aborted-is-delivered",
        "share.isolation.level=read_committed is not looked at.",
        _SHARES + "share_apis",
        '        committed = level == "read_committed"\n',
        "        committed = False\n",
        "SG-060 as 4.4",
    ),
)
"""In the order of the matter: delivery, counts, locks, sessions, isolation."""
