"""Which partition of the offsets topic a group lives on."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "PARTITION",
    """
PART-001 A group lives on the partition of Java's hash of its id, modulo the partitions
  @ LSJ model
  @ clients Utils.abs; scala GroupMetadataManager.partitionFor; java GroupCoordinatorServiceTest.testPartitionFor
  partition - 0
  partition a 47
  partition groupId 18
  partition otherGroup 13
  partition my-group 12
  partition connect-cluster 13
  partition group-éè 13
  partition 消费者组 38
  partition group-😀 7
  partition 🚀🚀 24
  partition 𐀀 46
  partition group-ajxoaS 0
PART-014 The hash's absolute value chooses the partition, not its lowest 31 bits
  @ LSJ model
  @ clients Utils.abs
  partition otherGroup 13
""",
)
