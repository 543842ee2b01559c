"""Share groups (KIP-932): records are delivered, locked, counted, isolated, delivered again.

A partition has a state once its group had a member; ShareFetch asks for no membership.
"""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

_ACQUIRED: Final = read_cases(
    "SHARE",
    """
SG-021 Records are acquired in the order of their offsets, and delivered for the first time
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.acquire
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest | configure NONE
  sharing A
  produce foo-0 3       | produce NONE at=0
  produce foo-0 2       | produce NONE at=3
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1 foo-0.read=0-2+3-4 lock=30000
SG-022 Two members share a partition: a record is with one of them at a time
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.acquire
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A B
  produce foo-0 3
  produce foo-0 2
  sharefetch A foo-0 max=3 | A NONE got=foo-0:0-2x1
  sharefetch B foo-0    | B NONE got=foo-0:3-4x1
  sharefetch A wait=0   | A NONE got=none
SG-023 A fetch waits for records, and has them when they are produced
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java DelayedShareFetch.tryComplete
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 1
  sharefetch A foo-0    | A NONE got=foo-0:0x1
  sharefetch A park=10000 | -
  produce foo-0 2       | produce NONE at=1; A NONE got=foo-0:1-2x1
SG-024 MaxRecords is met in whole batches: more are acquired than asked for
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.acquire
  @ KIP-1206 batch_optimized
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 3
  produce foo-0 2
  sharefetch A foo-0 max=2 | A NONE got=foo-0:0-2x1
SG-025 In the mode record_limit no record more than MaxRecords is acquired
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.acquire
  @ KIP-1206 record_limit
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A B
  produce foo-0 3
  produce foo-0 2
  sharefetch A foo-0 max=2 mode=1 v=2 | A NONE got=foo-0:0-1x1
  sharefetch B foo-0 max=2 mode=1 v=2 | B NONE got=foo-0:2x1/foo-0:2-3x1
SG-026 No more records are in flight than a partition may have locked
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.canAcquireRecords
  @ config group.share.partition.max.record.locks
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 2000
  produce foo-0 5
  sharefetch A foo-0 max=3000 | A NONE got=foo-0:0-1999x1
  sharefetch A max=3000 wait=0 | A NONE got=none
  acknowledge A foo-0=0-1999:accept | A NONE foo-0=NONE
  sharefetch A max=3000 | A NONE got=foo-0:2000-2004x1
SG-027 Groups have their own state of a partition: each has every record
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ KIP-932 Share groups
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 2
  sharefetch A foo-0    | A NONE got=foo-0:0-1x1
  acknowledge A foo-0=0-1:accept | A NONE foo-0=NONE
  group h
  configure share.auto.offset.reset=earliest
  sharing B
  sharefetch B foo-0    | B NONE got=foo-0:0-1x1
SG-028 A new group begins with what is produced later, unless its settings say earliest
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java ShareFetchUtils.offsetForLatestTimestamp
  @ config share.auto.offset.reset
  broker topics=foo:1 records=yes
  sharing A
  produce foo-0 3
  sharefetch A foo-0 park=10000 | -
  wait 500
  produce foo-0 2       | produce NONE; A NONE got=foo-0:3-4x1
SG-029 A topic id that no topic has is UNKNOWN_TOPIC_ID, beside what other partitions bring
  @ J must since=4.4 seen=4.4
  @ scala KafkaApis.handleFetchFromShareFetchRequest
  @ scala KafkaApis.processShareFetchResponse
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 1
  sharefetch A nobody-0 foo-0 | A NONE nobody-0.error=UNKNOWN_TOPIC_ID got=foo-0:0x1
SG-030 A partition too many is UNKNOWN_TOPIC_OR_PARTITION, beside what others bring
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ scala KafkaApis.handleFetchFromShareFetchRequest
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 1
  sharefetch A foo-0 foo-7 | A NONE foo-7.error=UNKNOWN_TOPIC_OR_PARTITION got=foo-0:0x1
SG-031 A group that never had a member has no state of a partition, and gets no records
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.maybeInitialize
  broker topics=foo:1 records=yes
  produce foo-0 1       | produce NONE
  sharefetch A foo-0 wait=200 | A NONE got=none
""",
)
_LOCKED: Final = read_cases(
    "SHARE",
    """
SG-045 A lock that runs out gives the records to others, and their count grows
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.releaseAcquisitionLockOnTimeout
  @ config share.record.lock.duration.ms
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest share.record.lock.duration.ms=15000
  sharing A B
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1 lock=15000
  wait 10000
  sharefetch B foo-0 wait=0 | B NONE got=none
  wait 5001
  sharefetch B          | B NONE got=foo-0:0-4x2
  acknowledge A foo-0=0-4:accept | A NONE foo-0=INVALID_RECORD_STATE
SG-046 A fetch that waits has records whose lock runs out
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.releaseAcquisitionLockOnTimeout
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest share.record.lock.duration.ms=15000
  sharing A B
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  sharefetch B foo-0 park=30000 | -
  wait 15001            | B NONE got=foo-0:0-4x2
SG-047 A renewed lock begins anew, and the records stay with their member
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ KIP-1222
  @ java SharePartition.acknowledge
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest share.record.lock.duration.ms=15000
  sharing A B
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  wait 10000
  acknowledge A foo-0=0-4:renew renew v=2 | A NONE foo-0=NONE lock=15000
  wait 10000
  sharefetch B foo-0 wait=0 | B NONE got=none
  acknowledge A foo-0=0-4:accept | A NONE foo-0=NONE
SG-048 A renewal is INVALID_REQUEST where the request does not say that it renews
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ KIP-1222
  @ scala KafkaApis.validateAcknowledgementBatches
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=0-4:renew v=2 | A NONE foo-0=INVALID_REQUEST
  acknowledge A foo-0=0-4:renew v=1 | A NONE foo-0=INVALID_REQUEST
SG-049 A ShareFetch that renews must not ask for records: INVALID_REQUEST
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ KIP-1222
  @ scala KafkaApis.handleShareFetchRequest
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  sharefetch A foo-0=0-4:renew renew v=2 | A INVALID_REQUEST
  sharefetch A foo-0=0-4:renew renew v=2 max=0 bytes=0 min=0 wait=0 | A NONE got=none foo-0.acked=NONE
SG-050 Leaving the group releases nothing: locks go with the session
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java ShareSessionCache
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A B
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  share A e=-1          | A NONE epoch=-1
  sharefetch B foo-0 wait=0 | B NONE got=none
  acknowledge A foo-0=0-4:accept | A NONE foo-0=NONE
""",
)
_ISOLATED: Final = read_cases(
    "SHARE",
    """
SG-059 Records of an aborted transaction are delivered, unless the group reads what is committed
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ config share.isolation.level
  @ java SharePartition.acquire
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  begin P
  enlist P foo-0        | P NONE
  produce foo-0 2 by=P  | produce NONE at=0
  end P ABORT           | P NONE
  wait 500
  produce foo-0 1       | produce NONE at=3
  sharefetch A foo-0    | A NONE got=foo-0:0-3x1
SG-060 With read_committed records of an aborted transaction are delivered to nobody
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ config share.isolation.level
  @ java SharePartition.filterAbortedTransactionalAcquiredRecords
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest share.isolation.level=read_committed
  sharing A
  begin P
  enlist P foo-0        | P NONE
  produce foo-0 2 by=P  | produce NONE at=0
  end P ABORT           | P NONE
  wait 500
  produce foo-0 1       | produce NONE at=3
  sharefetch A foo-0    | A NONE got=foo-0:2-3x1
SG-061 With read_committed an open transaction holds its records back, and those behind them
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ config share.isolation.level
  @ java DelayedShareFetch.tryComplete
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest share.isolation.level=read_committed
  sharing A
  produce foo-0 1
  begin P
  enlist P foo-0        | P NONE
  produce foo-0 2 by=P  | produce NONE at=1
  produce foo-0 1       | produce NONE at=3
  sharefetch A foo-0    | A NONE got=foo-0:0x1
  sharefetch A park=10000 | -
  end P COMMIT          | P NONE; A NONE got=foo-0:1-4x1
SG-062 Without read_committed the records of an open transaction are delivered
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ config share.isolation.level
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  begin P
  enlist P foo-0        | P NONE
  produce foo-0 2 by=P  | produce NONE at=0
  sharefetch A foo-0    | A NONE got=foo-0:0-1x1
""",
)
CASES: Final = (*_ACQUIRED, *_LOCKED, *_ISOLATED)
