"""Which protocol a generation uses."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "PROTOCOL",
    """
PROTO-001 The protocol that most members prefer is chosen
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupMetadataTest.testSelectProtocol
  @ java ClassicGroupTest.testSelectProtocol
  join A protocols=range,roundrobin
  join B protocols=roundrobin,range
  join C protocols=roundrobin,range
  join A                | A NONE protocol=roundrobin; B NONE; C NONE
PROTO-002 Only a protocol that all members offer is chosen
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupMetadataTest.testSelectProtocolChoosesCompatibleProtocol
  @ java ClassicGroupTest.testSelectProtocolChoosesCompatibleProtocol
  join A protocols=range,roundrobin
  join B protocols=roundrobin,blah
  join A                | A NONE protocol=roundrobin; B NONE protocol=roundrobin
PROTO-003 A tie between protocols is decided by the order of the coordinator's hash map
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupMetadataTest.testSelectProtocol
  join A protocols=roundrobin,range
  join B protocols=range,roundrobin
  [J] join A            | A NONE protocol=range; B NONE protocol=range
  [S] join A            | A NONE protocol=roundrobin; B NONE protocol=roundrobin
  [L] join A            | A NONE protocol=range/roundrobin; B NONE protocol=range/roundrobin
PROTO-004 A joiner that offers no protocol common to all is INCONSISTENT_GROUP_PROTOCOL
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupMetadataTest.testSupportsProtocols
  @ java ClassicGroupTest.testSupportsProtocols
  join A protocols=range,roundrobin
  join B protocols=roundrobin,blah
  join C protocols=range,foo      | C INCONSISTENT_GROUP_PROTOCOL
  join C protocols=roundrobin,foo | -
  join A                | A NONE members=A,B,C; B NONE; C NONE
PROTO-005 The leader leads the next generation, too, in whatever order members rejoin
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupMetadata.maybeElectNewJoinedLeader
  stable A B
  join C
  join B
  join A                | A NONE gen=3 leader=A; B NONE leader=A; C NONE leader=A
""",
)
