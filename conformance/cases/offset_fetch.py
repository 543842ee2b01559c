"""OffsetFetch: what is shown, and what has to wait."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "FETCH",
    """
FETCH-002 A fetch without partitions gets all offsets of the group
  @ LSJ must seen=0.10.2-4.4
  @ GroupCoordinatorTest.scala testFetchAllOffsets (trunk)
  commit - t-0=15 t-1=16 u-0=17
  fetch *                   | fetch t-0=15 t-1=16 u-0=17
FETCH-003 Offsets are read whatever the group's state
  @ LSJ must seen=0.10.2-4.4
  @ GroupCoordinator.scala (trunk)
  commit - t-0=15
  completing A
  state AwaitingSync
  fetch t-0                 | fetch t-0=15
FETCH-ZOOKEEPER Version 0 of a fetch reads ZooKeeper; what is not there is an unknown partition
  @ LS must until=2.8 seen=0.10.2-2.8
  @ 0.10.2 KafkaApis.handleOffsetFetchRequest
  @ scala KafkaZkClient.getConsumerOffset
  commit - t-0=5 v=2        | - t-0=NONE
  fetch t-0 v=0             | fetch t-0=-1 t-0.error=UNKNOWN_TOPIC_OR_PARTITION
  fetch t-0 nosuch-0 v=0    | fetch t-0=-1 nosuch-0=-1 nosuch-0.error=UNKNOWN_TOPIC_OR_PARTITION
  commit - t-1=-5 v=0       | - t-1=NONE
  fetch t-1 v=0             | fetch t-1=-5
FETCH-004 A fetch from another broker than the coordinator is NOT_COORDINATOR
  @ SJ must since=3.0 seen=3.9,4.4
  @ GroupCoordinatorTest.scala testFetchOffsetNotCoordinatorForGroup (trunk)
  commit - t-0=15
  resign
  fetch t-0 v=7             | fetch NOT_COORDINATOR
  fetch t-0 v=8             | fetch NOT_COORDINATOR
FETCH-005 An offset of an open transaction is not shown, but the one before it
  @ SJ must since=0.11 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testBasicFetchTxnOffsets (trunk)
  commit - t-0=5
  txn - t-0=10 pid=1000     | - t-0=NONE
  fetch t-0 v=7             | fetch t-0=5 t-0.error=NONE
FETCH-006 With require-stable, a partition of an open transaction is UNSTABLE_OFFSET_COMMIT
  @ SJ must since=2.5 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testFetchPendingTxnOffsetsWithAbort (trunk)
  txn - t-0=10 pid=1000     | - t-0=NONE
  fetch t-0 u-0 v=7 stable=1 | fetch t-0=-1 t-0.error=UNSTABLE_OFFSET_COMMIT u-0=-1 u-0.error=NONE
FETCH-007 A require-stable fetch of everything leaves out what only open transactions have
  @ SJ must since=2.5 seen=2.8-4.4
  @ OffsetMetadataManagerTest.java testFetchAllOffsetsWithPendingTransactionalOffsets (trunk)
  commit - t-1=3
  txn - t-0=10 pid=1000     | - t-0=NONE
  fetch * v=7 stable=1      | fetch t-1=3 count=1
FETCH-008 In Scala's coordinator a commit in flight makes its partition unstable
  @ S model since=2.5
  @ GroupMetadata.scala (trunk)
  hold
  commit - t-0=10           | -
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=UNSTABLE_OFFSET_COMMIT
FETCH-009 In Java's coordinator a require-stable fetch waits for commits in flight
  @ J model
  @ GroupCoordinatorService.java (trunk)
  hold
  commit - t-0=10           | -
  fetch t-0 stable=1        | -
  release                   | - t-0=NONE; fetch t-0=10
FETCH-010 A commit in flight is not shown to an ordinary fetch
  @ LSJ model
  @ OffsetMetadataManagerTest.java testFetchOffsetsAtDifferentCommittedOffset (trunk)
  commit - t-0=5
  hold
  commit - t-0=10           | -
  fetch t-0                 | fetch t-0=5
FETCH-011 A require-stable fetch that waits in vain is NOT_COORDINATOR after the write's timeout
  @ J model
  @ GroupCoordinatorService.java (trunk)
  hold
  commit - t-0=10
  fetch t-0 stable=1        | -
  wait 4999                 | -
  wait 1                    | - t-0=COORDINATOR_NOT_AVAILABLE; fetch NOT_COORDINATOR
FETCH-012 A fetch of several groups has an error for each
  @ SJ must since=3.0 seen=3.9,4.4
  @ KafkaApis.scala (trunk)
  group g1
  commit - t-0=5
  resign group=g2
  fetch t-0 groups=g1,g2    | fetch g1/t-0=5 g2/error=NOT_COORDINATOR
FETCH-013 A classic group takes a fetch with any member id and epoch
  @ SJ must since=3.7 seen=3.9-4.4
  @ ClassicGroup.java (trunk)
  commit - t-0=5
  fetch t-0 v=9 member=zzz epoch=77 | fetch t-0=5
FETCH-UNKNOWN A group that does not exist has no offsets, and is no error
  @ SJ must
  @ OffsetMetadataManager.fetchOffsets
  @ GroupMetadataManager.getOffsets
  fetch *                   | fetch NONE
  fetch t-0                 | fetch t-0=-1
FETCH-ORDER A fetch of everything in 0.10.2 comes in the order of Scala 2.12's maps
  @ L must
  @ 0.10.2 GroupMetadataManager.getOffsets
  commit - t-0=1 t-16=1 t-32=1 t-1=1 v=2
  fetch * v=2               | fetch order=t-32,t-0,t-16,t-1
""",
)
