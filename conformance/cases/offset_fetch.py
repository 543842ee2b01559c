"""OffsetFetch: what is shown, and what has to wait."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "FETCH",
    """
FETCH-002 a fetch of everything
  @ LSJ must seen=0.10.2-4.4
  @ GroupCoordinatorTest.scala testFetchAllOffsets (trunk)
  commit - t-0=15 t-1=16 u-0=17
  fetch *                   | fetch t-0=15 t-1=16 u-0=17
FETCH-003 the group's state does not matter
  @ LSJ must seen=0.10.2-4.4
  @ GroupCoordinator.scala (trunk)
  commit - t-0=15
  completing A
  state AwaitingSync
  fetch t-0                 | fetch t-0=15
FETCH-ZOOKEEPER version 0 reads ZooKeeper: what is not there is an unknown partition
  @ LS must until=2.8 seen=0.10.2-2.8
  @ 0.10.2 KafkaApis.handleOffsetFetchRequest
  @ scala KafkaZkClient.getConsumerOffset
  commit - t-0=5 v=2        | - t-0=NONE
  fetch t-0 v=0             | fetch t-0=-1 t-0.error=UNKNOWN_TOPIC_OR_PARTITION
  fetch t-0 nosuch-0 v=0    | fetch t-0=-1 nosuch-0=-1 nosuch-0.error=UNKNOWN_TOPIC_OR_PARTITION
  commit - t-1=-5 v=0       | - t-1=NONE
  fetch t-1 v=0             | fetch t-1=-5
FETCH-004 not the coordinator
  @ SJ must since=3.0 seen=3.9,4.4
  @ GroupCoordinatorTest.scala testFetchOffsetNotCoordinatorForGroup (trunk)
  commit - t-0=15
  resign
  fetch t-0 v=7             | fetch NOT_COORDINATOR
  fetch t-0 v=8             | fetch NOT_COORDINATOR
FETCH-005 a pending offset of a transaction shows the value before it
  @ SJ must since=0.11 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testBasicFetchTxnOffsets (trunk)
  commit - t-0=5
  txn - t-0=10 pid=1000     | - t-0=NONE
  fetch t-0 v=7             | fetch t-0=5 t-0.error=NONE
FETCH-006 a pending offset of a transaction is unstable
  @ SJ must since=2.5 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testFetchPendingTxnOffsetsWithAbort (trunk)
  txn - t-0=10 pid=1000     | - t-0=NONE
  fetch t-0 u-0 v=7 stable=1 | fetch t-0=-1 t-0.error=UNSTABLE_OFFSET_COMMIT u-0=-1 u-0.error=NONE
FETCH-007 a stable fetch of everything leaves out what is only pending
  @ SJ must since=2.5 seen=2.8-4.4
  @ OffsetMetadataManagerTest.java testFetchAllOffsetsWithPendingTransactionalOffsets (trunk)
  commit - t-1=3
  txn - t-0=10 pid=1000     | - t-0=NONE
  fetch * v=7 stable=1      | fetch t-1=3 count=1
FETCH-008 a plain commit in flight is unstable
  @ S model since=2.5
  @ GroupMetadata.scala (trunk)
  hold
  commit - t-0=10           | -
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=UNSTABLE_OFFSET_COMMIT
FETCH-009 a commit in flight delays a require-stable fetch
  @ J model
  @ GroupCoordinatorService.java (trunk)
  hold
  commit - t-0=10           | -
  fetch t-0 stable=1        | -
  release                   | - t-0=NONE; fetch t-0=10
FETCH-010 a commit in flight is invisible to an ordinary fetch
  @ LSJ model
  @ OffsetMetadataManagerTest.java testFetchOffsetsAtDifferentCommittedOffset (trunk)
  commit - t-0=5
  hold
  commit - t-0=10           | -
  fetch t-0                 | fetch t-0=5
FETCH-011 a require-stable fetch that waits too long
  @ J model
  @ GroupCoordinatorService.java (trunk)
  hold
  commit - t-0=10
  fetch t-0 stable=1        | -
  wait 4999                 | -
  wait 1                    | - t-0=COORDINATOR_NOT_AVAILABLE; fetch NOT_COORDINATOR
FETCH-012 a fetch of several groups fails group by group
  @ SJ must since=3.0 seen=3.9,4.4
  @ KafkaApis.scala (trunk)
  group g1
  commit - t-0=5
  resign group=g2
  fetch t-0 groups=g1,g2    | fetch g1/t-0=5 g2/error=NOT_COORDINATOR
FETCH-013 a classic group ignores the member's id and epoch
  @ SJ must since=3.7 seen=3.9-4.4
  @ ClassicGroup.java (trunk)
  commit - t-0=5
  fetch t-0 v=9 member=zzz epoch=77 | fetch t-0=5
FETCH-UNKNOWN a group that does not exist
  @ SJ must
  @ OffsetMetadataManager.fetchOffsets
  @ GroupMetadataManager.getOffsets
  fetch *                   | fetch NONE
  fetch t-0                 | fetch t-0=-1
""",
)
