"""Offsets that are deleted: by OffsetDelete, by DeleteGroups, with their topic."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "OFFSETDELETE",
    """
DELETE-001 OffsetDelete for an unknown group is GROUP_ID_NOT_FOUND, for "" INVALID_GROUP_ID
  @ SJ must since=2.4 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testDeleteOffsetOfNonExistingGroup (trunk)
  erase t-0                 | erase GROUP_ID_NOT_FOUND
  group -
  erase t-0                 | erase INVALID_GROUP_ID
DELETE-002 OffsetDelete for an active group that is not of consumers is NON_EMPTY_GROUP
  @ SJ must since=2.4 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testDeleteOffsetOfNonEmptyNonConsumerGroup (trunk)
  join A type=connect
  sync A A=a
  erase t-0                 | erase NON_EMPTY_GROUP
  state Stable type=connect
DELETE-003 An active group of consumers keeps the offsets of what it subscribes to
  @ SJ must since=2.4 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testDeleteOffsetOfStableConsumerGroup (trunk)
  stable A topics=bar
  commit A foo-0=37 bar-0=37
  --
  erase foo-0 bar-0         | erase NONE foo-0=NONE bar-0=GROUP_SUBSCRIBED_TO_TOPIC
  log offset foo-0=-
  fetch foo-0 bar-0 v=7     | fetch foo-0=-1 bar-0=37
DELETE-004 A subscription that cannot be read counts as one to everything
  @ SJ must since=2.4 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testDeleteOffsetOfConsumerGroupWithUnparsableProtocol (trunk)
  stable A topics=-
  commit A foo-0=37
  erase foo-0               | erase foo-0=GROUP_SUBSCRIBED_TO_TOPIC
DELETE-005 Any offset of an Empty group of consumers can be deleted
  @ SJ must since=2.4 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testDeleteOffsetOfEmptyConsumerGroup (trunk)
  stable A topics=foo
  commit A foo-0=37 bar-0=37
  leave A
  --
  erase foo-0               | erase NONE foo-0=NONE
  log offset foo-0=-
  fetch foo-0 bar-0 v=7     | fetch foo-0=-1 bar-0=37
DELETE-006 With its last offset an Empty group is deleted, too
  @ S must since=2.4 seen=2.8-3.9
  @ GroupMetadataManager.scala (trunk) cleanupGroupMetadata
  stable A topics=foo
  commit A foo-0=37
  leave A
  --
  erase foo-0               | erase NONE foo-0=NONE
  log offset foo-0=-; group gone=yes
  erase foo-0               | erase GROUP_ID_NOT_FOUND
  state none
DELETE-007 Without its last offset an Empty group stays
  @ J must seen=4.0-4.4
  @ OffsetMetadataManager.java (trunk) deleteOffsets
  stable A topics=foo
  commit A foo-0=37
  leave A
  --
  erase foo-0               | erase NONE foo-0=NONE
  log offset foo-0=-
  erase foo-0               | erase NONE foo-0=NONE
  state Empty gen=2
DELETE-008 Deleting an offset that is not there is no error
  @ SJ must since=2.4 seen=2.8-4.4
  @ OffsetMetadataManager.java (trunk)
  commit - foo-0=1
  --
  erase foo-5               | erase NONE foo-5=NONE
  log none
DELETE-009 OffsetDelete drops an offset of an open transaction
  @ SJ must since=2.4 seen=3.9-4.4
  @ OffsetMetadataManagerTest.java testGenericGroupOffsetDeleteWithPendingTransactionalOffsets (trunk)
  commit - bar-0=1
  txn - foo-0=10 pid=1000   | - foo-0=NONE
  erase foo-0               | erase NONE foo-0=NONE
  marker COMMIT pid=1000
  fetch foo-0 v=7           | fetch foo-0=-1 foo-0.error=NONE
DELETE-010 An offset of an open transaction that was dropped comes back with a failover
  @ S model since=2.4
  @ GroupMetadataManager.scala (trunk) doLoadGroupsAndOffsets
  commit - bar-0=1
  txn - foo-0=10 pid=1000   | - foo-0=NONE
  --
  erase foo-0               | erase NONE foo-0=NONE
  log none
  resign
  elect
  marker COMMIT pid=1000
  fetch foo-0 v=7           | fetch foo-0=10 foo-0.error=NONE
DELETE-012 DeleteGroups deletes the group's offsets, and a second time does not find it
  @ SJ must since=1.1 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testDeleteEmptyGroupWithStoredOffsets (trunk)
  stable A
  commit A t-0=5
  leave A
  --
  delete                    | delete g=NONE
  log offset t-0=-; group gone=yes
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
  describe                  | describe state=Dead
  delete                    | delete g=GROUP_ID_NOT_FOUND
DELETE-013 DeleteGroups of a group without members writes no tombstone of the group
  @ S model since=1.1
  @ GroupMetadataManager.scala (trunk) cleanupGroupMetadata
  commit - t-0=5
  --
  delete                    | delete g=NONE
  log offset t-0=-
DELETE-014 DeleteGroups of a group without members writes a tombstone of the group
  @ J model
  @ ClassicGroup.java (trunk)
  commit - t-0=5
  --
  delete                    | delete g=NONE
  log offset t-0=-; group gone=yes
DELETE-015 The offsets of a deleted topic are deleted, also those of active groups
  @ LSJ must seen=2.8-4.4
  @ GroupCoordinator.scala (trunk) handleDeletedPartitions
  stable A topics=t
  commit A t-0=5 u-0=6
  --
  topic remove t
  log offset t-0=-
  fetch t-0 u-0 v=7         | fetch t-0=-1 u-0=6
  state Stable
DELETE-SIMPLE Only Scala's coordinator deletes a simple group with its last offset
  @ SJ must since=2.4
  @ GroupMetadataManager.cleanupGroupMetadata
  commit - t-0=1
  --
  erase t-0                 | erase NONE t-0=NONE
  log offset t-0=-
  [S] state none
  [J] state Empty
DELETE-IN-FLIGHT An offset deleted while its commit is in flight stays deleted
  @ S model since=2.4
  @ GroupMetadata.onOffsetCommitAppend
  commit - t-1=1
  hold
  commit - t-0=1            | -
  erase t-0                 | erase NONE t-0=NONE
  release                   | - t-0=NONE
  fetch t-0 v=7             | fetch t-0=-1
DELETE-IN-FLIGHT.txn An offset deleted while its transactional commit is in flight stays deleted
  commit - t-1=1
  hold
  txn - t-0=1 pid=7         | -
  erase t-0                 | erase NONE t-0=NONE
  release                   | - t-0=NONE
  hold off
  marker COMMIT pid=7
  fetch t-0 v=7             | fetch t-0=-1
DELETE-TABLE-ORDER Tombstones come in the order of a table that keeps its largest size
  @ S model since=2.4
  @ GroupMetadataManager.cleanupGroupMetadata
  broker topics=t:12
  commit - t-0=1 t-1=1 t-2=1 t-3=1 t-4=1 t-5=1 t-6=1 t-7=1 t-8=1 t-9=1 t-10=1
  erase t-2 t-3 t-4 t-5 t-7 t-8 t-9 t-10
  --
  delete                    | delete g=NONE
  log offset t-1=-; offset t-0=-; offset t-6=-
DELETE-TABLE-ORDER.doubled The twelfth offset doubles the table
  broker topics=t:12
  commit - t-0=1 t-1=1 t-2=1 t-3=1 t-4=1 t-5=1 t-6=1 t-7=1 t-8=1 t-9=1 t-10=1 t-11=1
  erase t-2 t-3 t-4 t-5 t-7 t-8 t-9 t-10 t-11
  --
  delete                    | delete g=NONE
  log offset t-6=-; offset t-1=-; offset t-0=-
DELETE-TABLE-ORDER.loaded A load fills the table as commits do
  broker topics=t:12
  commit - t-0=1 t-1=1 t-2=1 t-3=1 t-4=1 t-5=1 t-6=1 t-7=1 t-8=1 t-9=1 t-10=1
  resign
  elect
  erase t-2 t-3 t-4 t-5 t-7 t-8 t-9 t-10
  --
  delete                    | delete g=NONE
  log offset t-1=-; offset t-0=-; offset t-6=-
DELETE-TABLE-ORDER.loaded-doubled The twelfth offset of a load doubles the table
  broker topics=t:12
  commit - t-0=1 t-1=1 t-2=1 t-3=1 t-4=1 t-5=1 t-6=1 t-7=1 t-8=1 t-9=1 t-10=1 t-11=1
  resign
  elect
  erase t-2 t-3 t-4 t-5 t-7 t-8 t-9 t-10 t-11
  --
  delete                    | delete g=NONE
  log offset t-6=-; offset t-1=-; offset t-0=-
""",
)
