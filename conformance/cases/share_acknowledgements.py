"""Share groups (KIP-932): acknowledgements, share sessions, offsets of a group."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

_ACKNOWLEDGED: Final = read_cases(
    "SHARE",
    """
SG-032 Accepted records are not delivered again, and lag behind no longer
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.acknowledge
  @ java SharePartition.maybeUpdateCachedStateAndOffsets
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A B
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=0-4:accept | A NONE foo-0=NONE
  offsets foo-0         | offsets NONE foo-0.lag=0
  sharefetch B foo-0 wait=0 | B NONE got=none
SG-033 The start offset is that of the first record that is not done with
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.maybeUpdateCachedStateAndOffsets
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A B
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=1-2:accept | A NONE foo-0=NONE
  offsets foo-0         | offsets NONE foo-0=0 foo-0.lag=3
  acknowledge A foo-0=0:accept | A NONE foo-0=NONE
  acknowledge A foo-0=3:accept | A NONE foo-0=NONE
  offsets foo-0         | offsets NONE foo-0=3 foo-0.lag=1
SG-034 Released records are delivered again, to anybody, and their count grows
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.acknowledge
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A B
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=0-4:release | A NONE foo-0=NONE
  sharefetch B foo-0    | B NONE got=foo-0:0-4x2
  acknowledge B foo-0=0-4:release | B NONE foo-0=NONE
  sharefetch A          | A NONE got=foo-0:0-4x3
SG-035 Rejected records are archived: nobody has them again
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.acknowledge
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A B
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=0-4:reject | A NONE foo-0=NONE
  offsets foo-0         | offsets NONE foo-0.lag=0
  sharefetch B foo-0 wait=0 | B NONE got=none
SG-036 Each record of a batch may have a type of its own; a gap is archived
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.acknowledgePerOffsetBatchRecords
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A B
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=0-4:accept+release+reject+gap+release | A NONE foo-0=NONE
  offsets foo-0         | offsets NONE foo-0.lag=2
  sharefetch B foo-0    | B NONE got=foo-0:1x2+4x2
SG-037 A record is given up after as many deliveries as the group allows
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java InFlightState.tryUpdateState
  @ config group.share.delivery.count.limit
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 1
  sharefetch A foo-0    | A NONE got=foo-0:0x1
  acknowledge A foo-0=0:release
  sharefetch A          | A NONE got=foo-0:0x2
  acknowledge A foo-0=0:release
  sharefetch A          | A NONE got=foo-0:0x3
  acknowledge A foo-0=0:release
  sharefetch A          | A NONE got=foo-0:0x4
  acknowledge A foo-0=0:release
  sharefetch A          | A NONE got=foo-0:0x5
  acknowledge A foo-0=0:release | A NONE foo-0=NONE
  sharefetch A wait=0   | A NONE got=none
  offsets foo-0         | offsets NONE foo-0.lag=0
SG-038 Acknowledgements may come with a fetch, and the answer says what became of them
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ scala KafkaApis.handleShareFetchRequest
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 3
  produce foo-0 2
  sharefetch A foo-0 max=3 | A NONE got=foo-0:0-2x1 foo-0.acked=NONE
  sharefetch A foo-0=0-2:accept | A NONE got=foo-0:3-4x1 foo-0.acked=NONE
  sharefetch A foo-0=4:accept wait=0 | A NONE got=none foo-0.acked=NONE
  sharefetch A foo-0=4:accept wait=0 | A NONE got=none foo-0.acked=INVALID_RECORD_STATE
SG-039 What is not acquired cannot be acknowledged: INVALID_RECORD_STATE
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.acknowledgeBatchRecords
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=1-2:accept | A NONE foo-0=NONE
  acknowledge A foo-0=2:accept | A NONE foo-0=INVALID_RECORD_STATE
  acknowledge A foo-0=3-4:release | A NONE foo-0=NONE
  acknowledge A foo-0=3-4:accept | A NONE foo-0=INVALID_RECORD_STATE
SG-040 Records of another member cannot be acknowledged: INVALID_RECORD_STATE
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.validateAcknowledgementBatchMemberId
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A B
  produce foo-0 3
  produce foo-0 2
  sharefetch A foo-0 max=3 | A NONE got=foo-0:0-2x1
  sharefetch B foo-0    | B NONE got=foo-0:3-4x1
  acknowledge B foo-0=0-2:accept | B NONE foo-0=INVALID_RECORD_STATE
  acknowledge A foo-0=0-2:accept | A NONE foo-0=NONE
SG-041 A refused acknowledgement changes nothing, whatever comes before in the request
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.rollbackOrProcessStateUpdates
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=1-2:accept,4-9:accept | A NONE foo-0=INVALID_REQUEST
  acknowledge A foo-0=0-4:accept | A NONE foo-0=NONE
SG-042 An acknowledgement of what is done with for good is taken, and changes nothing
  @ J must quirk since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.acknowledge
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=0-1:accept | A NONE foo-0=NONE
  acknowledge A foo-0=0-1:release | A NONE foo-0=NONE
  acknowledge A foo-0=1-2:accept | A NONE foo-0=NONE
  sharefetch A wait=0   | A NONE got=none
SG-043 Acknowledgements backwards, out of order or without a type are INVALID_REQUEST
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ scala KafkaApis.validateAcknowledgementBatches
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=1-0:accept | A NONE foo-0=INVALID_REQUEST
  acknowledge A foo-0=2-3:accept,0-1:accept | A NONE foo-0=INVALID_REQUEST
  acknowledge A foo-0=0-1: | A NONE foo-0=INVALID_REQUEST
  acknowledge A foo-0=0-2:accept+accept | A NONE foo-0=INVALID_REQUEST
  acknowledge A foo-0=0-1:5 | A NONE foo-0=INVALID_REQUEST
SG-044 A partition that does not exist is acknowledged with its own error
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ scala KafkaApis.handleAcknowledgements
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 1
  sharefetch A foo-0    | A NONE got=foo-0:0x1
  acknowledge A nobody-0=0:accept foo-7=0:accept foo-0=0:accept | A NONE nobody-0=UNKNOWN_TOPIC_ID foo-7=UNKNOWN_TOPIC_OR_PARTITION foo-0=NONE
""",
)
_SESSIONS: Final = read_cases(
    "SHARE",
    """
SG-051 A session goes on with the epoch after the last one: others are INVALID_SHARE_SESSION_EPOCH
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartitionManager.newContext
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  sharefetch A e=2      | A INVALID_SHARE_SESSION_EPOCH
  acknowledge A foo-0=0:accept e=3 | A INVALID_SHARE_SESSION_EPOCH
  sharefetch A e=1 wait=0 | A NONE got=none
  acknowledge A foo-0=0:accept e=2 | A NONE foo-0=NONE
  acknowledge A foo-0=1:accept e=2 | A INVALID_SHARE_SESSION_EPOCH
SG-052 Without a session an epoch above 0, or the last one, is SHARE_SESSION_NOT_FOUND
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartitionManager.newContext
  @ java SharePartitionManager.acknowledgeSessionUpdate
  broker topics=foo:1 records=yes
  sharing A
  sharefetch A foo-0 e=1 | A SHARE_SESSION_NOT_FOUND
  sharefetch A foo-0 e=-1 | A SHARE_SESSION_NOT_FOUND
  acknowledge A foo-0=0:accept e=1 | A SHARE_SESSION_NOT_FOUND
  acknowledge A foo-0=0:accept e=-1 | A SHARE_SESSION_NOT_FOUND
SG-053 The request that begins a session acknowledges nothing
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartitionManager.newContext
  @ java SharePartitionManager.acknowledgeSessionUpdate
  broker topics=foo:1 records=yes
  sharing A
  sharefetch A foo-0=0:accept e=0 | A INVALID_REQUEST
  acknowledge A foo-0=0:accept e=0 | A INVALID_SHARE_SESSION_EPOCH
SG-054 The last request of a session releases what its member had, and ends it
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartitionManager.releaseSession
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A B
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  sharefetch A e=-1     | A NONE got=none
  sharefetch B foo-0    | B NONE got=foo-0:0-4x2
  acknowledge A foo-0=0:accept e=1 | A SHARE_SESSION_NOT_FOUND
SG-055 What the last request acknowledges is done with, and the rest is released
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ scala KafkaApis.handleShareAcknowledgeRequest
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A B
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=0-2:accept e=-1 | A NONE foo-0=NONE
  sharefetch B foo-0    | B NONE got=foo-0:3-4x2
SG-056 A member that begins its session anew still has its records
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartitionManager.newContext
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  sharefetch A foo-0 e=0 wait=0 | A NONE got=none
  acknowledge A foo-0=0-4:accept | A NONE foo-0=NONE
SG-057 A session remembers its partitions until they are forgotten
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java ShareSession.update
  broker topics=foo:2 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 1
  sharefetch A foo-0    | A NONE got=foo-0:0x1
  produce foo-1 1
  sharefetch A foo-1    | A NONE got=foo-1:0x1
  produce foo-0 1
  sharefetch A          | A NONE got=foo-0:1x1
  sharefetch A forget=foo-0 wait=0 | A NONE got=none
  produce foo-0 1
  sharefetch A wait=0   | A NONE got=none
SG-058 A member id that is empty is INVALID_REQUEST
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ scala KafkaApis.handleShareFetchRequest
  broker topics=foo:1 records=yes
  sharing A
  sharefetch A foo-0 id=none | A INVALID_REQUEST
  acknowledge A foo-0=0:accept id=none e=1 | A INVALID_REQUEST
""",
)
_OFFSETS: Final = read_cases(
    "SHARE",
    """
SG-063 The offsets of an Empty group can be altered, and delivery begins there
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java GroupCoordinatorService.alterShareGroupOffsets
  broker topics=foo:1 records=yes
  sharing A
  produce foo-0 5
  share A e=-1          | A NONE epoch=-1
  alter foo-0=3         | alter NONE foo-0=NONE
  offsets foo-0         | offsets NONE foo-0=3 foo-0.lag=2
  sharing B
  sharefetch B foo-0    | B NONE got=foo-0:3-4x1
SG-063.unknown A group that does not exist comes into being; a partition that does not is refused
  broker topics=foo:4 records=yes
  alter foo-1=7 foo-9=0 | alter NONE foo-1=NONE foo-9=UNKNOWN_TOPIC_OR_PARTITION
  shares                | shares NONE state=Empty
SG-064 The offsets of a group with members are neither altered nor deleted: NON_EMPTY_GROUP
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java GroupCoordinatorService.alterShareGroupOffsets
  @ java GroupCoordinatorService.deleteShareGroupOffsets
  broker topics=foo:1 records=yes
  sharing A
  alter foo-0=0         | alter NON_EMPTY_GROUP
  forget foo            | forget NON_EMPTY_GROUP
SG-065 A group whose offsets are deleted begins anew
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java GroupCoordinatorService.deleteShareGroupOffsets
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=0-4:accept e=-1 | A NONE foo-0=NONE
  share A e=-1          | A NONE epoch=-1
  forget foo            | forget NONE foo=NONE
  offsets foo-0         | offsets NONE foo-0=-1
SG-065.again Offsets that were deleted are not deleted again
  broker topics=foo:4 records=yes
  alter foo-1=7         | alter NONE foo-1=NONE
  forget foo            | forget NONE foo=NONE
  forget foo            | forget NONE foo=UNKNOWN_TOPIC_OR_PARTITION
SG-066 A group that left and comes back goes on where it was, and counts deliveries
  @ J must since=4.2 seen=4.2.2,4.3,4.4
  @ java SharePartition.maybeInitialize
  broker topics=foo:1 records=yes
  configure share.auto.offset.reset=earliest
  sharing A
  produce foo-0 5
  sharefetch A foo-0    | A NONE got=foo-0:0-4x1
  acknowledge A foo-0=0-2:accept e=-1 | A NONE foo-0=NONE
  share A e=-1          | A NONE epoch=-1
  sharing B
  sharefetch B foo-0    | B NONE got=foo-0:3-4x2
""",
)
CASES: Final = (*_ACKNOWLEDGED, *_SESSIONS, *_OFFSETS)
