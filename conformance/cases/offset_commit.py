"""OffsetCommit: who may, what is stored, what an append error becomes."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "COMMIT",
    """
COMMIT-001 A commit without a member makes an Empty group without protocol type
  @ LSJ must seen=0.10.2-4.4
  @ GroupCoordinatorTest.scala testCommitOffsetWithDefaultGeneration (trunk)
  commit - t-0=10           | - t-0=NONE
  state Empty gen=0 type=-
  log offset t-0=10
COMMIT-002 Up to version 8, a commit of a member of an unknown group is ILLEGAL_GENERATION
  @ LSJ must seen=0.10.2-4.4
  @ GroupCoordinatorTest.scala testCommitOffsetFromUnknownGroup (trunk)
  commit - t-0=10 gen=1 id=m1 v=8 | - t-0=ILLEGAL_GENERATION
  state none
COMMIT-003 From version 9 on, a commit of a member of an unknown group is GROUP_ID_NOT_FOUND
  @ J must seen=4.0-4.4
  @ OffsetMetadataManagerTest.java testOffsetCommitWithUnknownGroup (trunk)
  commit - t-0=10 gen=1 id=m1 v=9 | - t-0=GROUP_ID_NOT_FOUND
  state none
COMMIT-004 In 3.6 to 3.9 a commit of version 9 to an unknown group is ILLEGAL_GENERATION
  @ S must since=3.6 seen=3.9
  @ GroupCoordinator.scala (trunk)
  commit - t-0=10 gen=1 id=m1 v=9 | - t-0=ILLEGAL_GENERATION
  state none
COMMIT-005 A member of a Stable group commits, and reads what it committed
  @ LSJ must seen=0.10.2-4.4
  @ GroupCoordinatorTest.scala (trunk)
  stable A
  commit A t-0=10           | A t-0=NONE
  fetch t-0                 | fetch t-0=10 t-0.epoch=-1 t-0.metadata=-
COMMIT-007 A commit without a member is refused by a group that has members
  @ SJ must since=2.4 seen=2.8-4.4
  @ GroupCoordinator.scala (trunk)
  stable A
  commit - t-0=10           | - t-0=UNKNOWN_MEMBER_ID
  commit A t-0=10 gen=-1    | A t-0=ILLEGAL_GENERATION
COMMIT-008 In the join phase members may commit in the old generation
  @ LSJ must seen=0.10.2-4.4
  @ GroupCoordinator.scala (trunk)
  stable A B
  join C
  commit A t-0=10           | A t-0=NONE
  state PreparingRebalance
COMMIT-009 In the sync phase a commit is refused, by the errors of membership first
  @ SJ must since=2.4 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testCommitOffsetInCompletingRebalance and siblings (trunk)
  completing A
  commit A t-0=10           | A t-0=REBALANCE_IN_PROGRESS
  commit - t-0=10 gen=1     | - t-0=UNKNOWN_MEMBER_ID
  commit A t-0=10 gen=2     | A t-0=ILLEGAL_GENERATION
  commit - t-0=10           | - t-0=UNKNOWN_MEMBER_ID
COMMIT-010 Up to 2.3 a commit in the sync phase is REBALANCE_IN_PROGRESS, whoever sends it
  @ L must until=2.3 seen=0.10.2
  @ GroupCoordinator.scala (2.3)
  completing A
  commit A t-0=10 gen=2 id=zzz | A t-0=REBALANCE_IN_PROGRESS
COMMIT-012 An Empty group refuses a commit with a generation as UNKNOWN_MEMBER_ID
  @ LSJ must seen=0.10.2-4.4
  @ GroupCoordinator.scala (trunk)
  stable A
  leave A
  commit A t-0=10 gen=2     | A t-0=UNKNOWN_MEMBER_ID
COMMIT-013 A commit without a generation to an Empty group may name any ids
  @ SJ must since=3.3 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testManualCommitOffsetShouldNotValidateMemberIdAndInstanceId (trunk)
  commit - t-0=10 i=i1      | - t-0=NONE
  commit - t-0=10 id=unknown | - t-0=NONE
COMMIT-014 In 3.0 to 3.2 a commit without a generation to an Empty group may name no ids
  @ S must since=3.0 until=3.2 switches=checks_ids_of_simple_commit
  @ GroupCoordinator.scala (3.0)
  commit - t-0=1            | - t-0=NONE
  commit - t-0=10 id=unknown | - t-0=UNKNOWN_MEMBER_ID
  commit - t-0=10 i=i1      | - t-0=UNKNOWN_MEMBER_ID
  commit - t-0=10           | - t-0=NONE
COMMIT-015 A commit with a stale static id is fenced; an unknown instance is UNKNOWN_MEMBER_ID
  @ SJ must since=3.0 seen=3.9-4.4
  @ OffsetMetadataManagerTest.java testGenericGroupOffsetCommitWithFencedInstanceId, ...WithUnknownInstanceId (trunk)
  stable M:i1
  commit M t-0=10 id=old    | M t-0=FENCED_INSTANCE_ID
  commit M t-0=10 i=nope    | M t-0=UNKNOWN_MEMBER_ID
  commit M t-0=10           | M t-0=NONE
COMMIT-016 A commit to a Dead group is COORDINATOR_NOT_AVAILABLE
  @ SJ model since=2.3
  @ GroupCoordinatorTest.scala testOffsetCommitDeadGroup (trunk)
  stable A
  force Dead
  commit A t-0=10           | A t-0=COORDINATOR_NOT_AVAILABLE
COMMIT-017 Up to 2.2 a commit to a Dead group is UNKNOWN_MEMBER_ID
  @ L model until=2.2
  @ GroupCoordinator.scala (0.10.2)
  stable A
  force Dead
  commit A t-0=10           | A t-0=UNKNOWN_MEMBER_ID
COMMIT-018 A commit restarts the session
  @ LSJ must seen=0.10.2-4.4
  @ GroupCoordinatorTest.scala testCommitMaintainsSession (trunk)
  stable A session=1000
  wait 500
  commit A t-0=10           | A t-0=NONE
  wait 600
  heartbeat A               | A NONE
COMMIT-020 Metadata may have offset.metadata.max.bytes UTF-16 units, and not one more
  @ LSJ must seen=0.10.2-4.4
  @ GroupMetadataManagerTest.scala testOffsetMetadataTooLargePartialFailure (trunk)
  commit - t-0=1/4096 t-1=1/4097            | - t-0=NONE t-1=OFFSET_METADATA_TOO_LARGE
  commit - t-0=2/2048 t-1=2/2049 unit=wide  | - t-0=NONE t-1=OFFSET_METADATA_TOO_LARGE
  log offset t-0=1; offset t-0=2
COMMIT-021 A commit of which all metadata is too long appends nothing
  @ LSJ must seen=0.10.2-4.4
  @ GroupMetadataManagerTest.scala testOffsetMetadataTooLarge (trunk)
  commit - t-0=1/4097       | - t-0=OFFSET_METADATA_TOO_LARGE
  log none
COMMIT-022 Up to 3.6 a partition refused for its metadata stays unstable where others are stored
  @ S must since=2.5 until=3.6 seen=2.8
  @ GroupMetadataManager.scala (3.6); KAFKA-16371
  commit - t-0=1
  commit - t-0=1 t-1=1/4097 | - t-0=NONE t-1=OFFSET_METADATA_TOO_LARGE
  fetch t-1 v=7 stable=1    | fetch t-1=-1 t-1.error=UNSTABLE_OFFSET_COMMIT
COMMIT-023 From 3.7 on, a partition refused for its metadata is not unstable
  @ SJ must since=3.7 seen=3.9-4.4
  @ GroupMetadataManager.scala (3.7)
  commit - t-0=1 t-1=1/4097
  fetch t-1 stable=1        | fetch t-1=-1
COMMIT-025 An unknown partition is the broker's error, beside the coordinator's for the others
  @ LSJ must seen=0.10.2-4.4
  @ KafkaApis.scala (trunk)
  broker topics=t
  stable A
  commit A t-0=1 nosuch-0=1 gen=9 | A t-0=ILLEGAL_GENERATION nosuch-0=UNKNOWN_TOPIC_OR_PARTITION
COMMIT-ZOOKEEPER Version 0 of a commit is kept in ZooKeeper, apart from the log
  @ LS must until=2.8 seen=0.10.2-2.8
  @ 0.10.2 KafkaApis.handleOffsetCommitRequest
  @ scala KafkaZkClient.setOrCreateConsumerOffset
  commit - t-0=5 v=0 meta=text | - t-0=NONE
  list                      | list NONE groups=-
  fetch t-0 v=1             | fetch t-0=-1
  fetch t-0 v=0             | fetch t-0=5 t-0.metadata=-
  commit - t-0=7 v=2 meta=text | - t-0=NONE
  fetch t-0 v=0             | fetch t-0=5
  fetch t-0 v=1             | fetch t-0=7 t-0.metadata=text
  log offset t-0=7
COMMIT-ZOOKEEPER.member Version 0 of a commit asks for no group and no generation
  stable A
  --
  commit A t-0=5 v=0 gen=77 | A t-0=NONE
  commit - t-0=6 v=0        | - t-0=NONE
  fetch t-0 v=0             | fetch t-0=6
  log none
COMMIT-ZOOKEEPER.refused Version 0 of a commit is checked for its topics and its metadata
  broker topics=t
  commit - t-0=1 nosuch-0=1 v=0 | - t-0=NONE nosuch-0=UNKNOWN_TOPIC_OR_PARTITION
  commit - t-1=1/4097 v=0   | - t-1=OFFSET_METADATA_TOO_LARGE
  [L] commit - t-9=1 v=0    | - t-9=NONE
  [S] commit - t-9=1 v=0    | - t-9=UNKNOWN_TOPIC_OR_PARTITION
  group -
  commit - t-0=1 v=0        | - t-0=UNKNOWN_SERVER_ERROR
COMMIT-ZOOKEEPER.inactive Version 0 of a commit needs no group coordinator
  broker
  resign
  commit - t-0=5 v=0        | - t-0=NONE
  fetch t-0 v=0             | fetch t-0=5
COMMIT-027 The leader epoch and the metadata of a commit come back
  @ SJ must since=2.1 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testFetchOffsets (trunk)
  commit - t-0=97 epoch=15 meta=text
  fetch t-0                 | fetch t-0=97 t-0.epoch=15 t-0.metadata=text
COMMIT-029 Offsets may go backwards
  @ LSJ must seen=0.10.2-4.4
  @ GroupMetadata.scala (trunk)
  commit - t-0=100
  commit - t-0=5
  fetch t-0                 | fetch t-0=5
COMMIT-030 An empty group id may store offsets
  @ LSJ must seen=0.10.2-4.4
  @ GroupCoordinatorTest.scala testCommitAndFetchOffsetsWithEmptyGroup (trunk)
  group -
  commit - t-0=10           | - t-0=NONE
  fetch t-0                 | fetch t-0=10
COMMIT-032 A commit to a partition that loads is COORDINATOR_LOAD_IN_PROGRESS
  @ SJ model since=2.0
  @ GroupCoordinator.scala (trunk)
  resign
  load begin
  commit - t-0=10           | - t-0=COORDINATOR_LOAD_IN_PROGRESS
COMMIT-033 A commit survives the failure of an earlier one that was in flight with it
  @ LS model
  @ GroupMetadataTest.scala testOffsetCommitFailureWithAnotherPending (trunk)
  fail NOT_ENOUGH_REPLICAS
  hold
  commit - t-0=37
  commit - t-0=57
  release
  fetch t-0 v=7             | fetch t-0=57
  fetch t-0 v=7 stable=1    | fetch t-0=57 t-0.error=NONE
COMMIT-APPEND In 0.10.2 each error of an append becomes one certain error of OffsetCommit
  @ L model
  @ 0.10.2 GroupMetadataManager.prepareStoreOffsets
  fail UNKNOWN_TOPIC_OR_PARTITION
  commit - t-0=10           | - t-0=COORDINATOR_NOT_AVAILABLE
  fail NOT_ENOUGH_REPLICAS
  commit - t-0=10           | - t-0=COORDINATOR_NOT_AVAILABLE
  fail NOT_ENOUGH_REPLICAS_AFTER_APPEND
  commit - t-0=10           | - t-0=COORDINATOR_NOT_AVAILABLE
  fail NOT_LEADER_OR_FOLLOWER
  commit - t-0=10           | - t-0=NOT_COORDINATOR
  fail MESSAGE_TOO_LARGE
  commit - t-0=10           | - t-0=INVALID_COMMIT_OFFSET_SIZE
  fail RECORD_LIST_TOO_LARGE
  commit - t-0=10           | - t-0=INVALID_COMMIT_OFFSET_SIZE
  fail INVALID_FETCH_SIZE
  commit - t-0=10           | - t-0=INVALID_COMMIT_OFFSET_SIZE
  fetch t-0 v=2             | fetch t-0=-1
  commit - t-0=10           | - t-0=NONE
  fetch t-0 v=2             | fetch t-0=10
COMMIT-035 In Scala's coordinator each error of an append becomes one certain error
  @ S model since=1.0
  @ GroupMetadataManagerTest.scala testCommitOffsetFailure (trunk)
  fail UNKNOWN_TOPIC_OR_PARTITION
  commit - t-0=10           | - t-0=COORDINATOR_NOT_AVAILABLE
  fetch t-0 v=7             | fetch t-0=-1
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  fail NOT_ENOUGH_REPLICAS
  commit - t-0=10           | - t-0=COORDINATOR_NOT_AVAILABLE
  fetch t-0 v=7             | fetch t-0=-1
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  fail NOT_ENOUGH_REPLICAS_AFTER_APPEND
  commit - t-0=10           | - t-0=COORDINATOR_NOT_AVAILABLE
  fetch t-0 v=7             | fetch t-0=-1
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  fail NOT_LEADER_OR_FOLLOWER
  commit - t-0=10           | - t-0=NOT_COORDINATOR
  fetch t-0 v=7             | fetch t-0=-1
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  fail KAFKA_STORAGE_ERROR
  commit - t-0=10           | - t-0=NOT_COORDINATOR
  fetch t-0 v=7             | fetch t-0=-1
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  fail MESSAGE_TOO_LARGE
  commit - t-0=10           | - t-0=INVALID_COMMIT_OFFSET_SIZE
  fetch t-0 v=7             | fetch t-0=-1
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  fail RECORD_LIST_TOO_LARGE
  commit - t-0=10           | - t-0=INVALID_COMMIT_OFFSET_SIZE
  fetch t-0 v=7             | fetch t-0=-1
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  fail INVALID_FETCH_SIZE
  commit - t-0=10           | - t-0=INVALID_COMMIT_OFFSET_SIZE
  fetch t-0 v=7             | fetch t-0=-1
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  fail REQUEST_TIMED_OUT
  commit - t-0=10           | - t-0=REQUEST_TIMED_OUT
  fetch t-0 v=7             | fetch t-0=-1
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  fail CORRUPT_MESSAGE
  commit - t-0=10           | - t-0=CORRUPT_MESSAGE
  fetch t-0 v=7             | fetch t-0=-1
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
COMMIT-036 In Java's coordinator each error of an append becomes one certain error
  @ J model
  @ CoordinatorOperationExceptionHelper.java (trunk)
  fail UNKNOWN_TOPIC_OR_PARTITION
  commit - t-0=10           | - t-0=COORDINATOR_NOT_AVAILABLE
  fail NOT_ENOUGH_REPLICAS
  commit - t-0=10           | - t-0=COORDINATOR_NOT_AVAILABLE
  fail REQUEST_TIMED_OUT
  commit - t-0=10           | - t-0=COORDINATOR_NOT_AVAILABLE
  fail NOT_LEADER_OR_FOLLOWER
  commit - t-0=10           | - t-0=NOT_COORDINATOR
  fail KAFKA_STORAGE_ERROR
  commit - t-0=10           | - t-0=NOT_COORDINATOR
  fail MESSAGE_TOO_LARGE
  commit - t-0=10           | - t-0=UNKNOWN_SERVER_ERROR
  fail RECORD_LIST_TOO_LARGE
  commit - t-0=10           | - t-0=UNKNOWN_SERVER_ERROR
  fail INVALID_FETCH_SIZE
  commit - t-0=10           | - t-0=UNKNOWN_SERVER_ERROR
  fail NETWORK_EXCEPTION
  commit - t-0=10           | - t-0=COORDINATOR_LOAD_IN_PROGRESS
  fetch t-0                 | fetch t-0=-1
  state none
COMMIT-OUT-OF-ORDER A commit that is replicated after a later one does not replace that
  @ S model
  @ GroupMetadata.onOffsetCommitAppend
  hold
  commit - t-0=1            | -
  hold off
  commit - t-0=2            | - t-0=NONE
  release                   | - t-0=NONE
  fetch t-0 v=7             | fetch t-0=2
""",
)
