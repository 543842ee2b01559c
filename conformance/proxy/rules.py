"""What the proxy requires of replies: each rule with its id, in one sentence, and its source."""

from typing import Final

from msgspec import Struct


class Rule(Struct, frozen=True, kw_only=True):
    """One requirement on replies seen in passing.

    Args:
        rule_id: Permanent id.
        says: The requirement in one sentence.
        source: Where Kafka says so.
        all_pass: Whether it can be judged only where every client of the group passes the proxy.
    """

    rule_id: str
    says: str
    source: str
    all_pass: bool = False


_JAVA: Final = "group-coordinator/.../GroupMetadataManager."
_CLASSIC: Final = "group-coordinator/.../classic/ClassicGroup."

IN_ORDER: Final = Rule(
    rule_id="PX-WIRE-01",
    says="replies of a connection come in the order of its requests, with their correlation ids",
    source="protocol guide, Network; core/.../network/SocketServer",
)
READABLE: Final = Rule(
    rule_id="PX-WIRE-02",
    says="a reply is one message of its API and version, without further bytes",
    source="clients/.../common/message/*Response.json",
)
THROTTLE: Final = Rule(
    rule_id="PX-WIRE-03",
    says="a throttle time is not negative",
    source="clients/.../common/message/*Response.json, throttleTimeMs",
)
KNOWN_ERROR: Final = Rule(
    rule_id="PX-ERR-01",
    says="Kafka has the error for that API and version, at that level of the reply",
    source="clients/.../common/requests/*Response.java, possible error codes",
)
GENERATION_COUNTS: Final = Rule(
    rule_id="PX-JOIN-01",
    says="a completed join phase has a generation of 1 or more",
    source=_CLASSIC + "initNextGeneration",
)
GENERATION_GROWS: Final = Rule(
    rule_id="PX-JOIN-02",
    says="no reply gives a member an older generation than one that it has synced in",
    source=_CLASSIC + "initNextGeneration",
)
LEADER_SEES: Final = Rule(
    rule_id="PX-JOIN-03",
    says="only the leader of a generation receives its list of members",
    source=_JAVA + "completeClassicGroupJoin",
)
ONE_PROTOCOL: Final = Rule(
    rule_id="PX-JOIN-04",
    says="members of one generation receive one protocol, one type and one leader",
    source=_JAVA + "completeClassicGroupJoin",
)
ALL_LISTED: Final = Rule(
    rule_id="PX-JOIN-05",
    says="the leader's list has every member that is answered in the generation",
    source=_CLASSIC + "currentClassicGroupMembers",
)
ID_REQUIRED: Final = Rule(
    rule_id="PX-JOIN-06",
    says="MEMBER_ID_REQUIRED answers only a dynamic member without an id, and has an id",
    source="KIP-394; " + _JAVA + "classicGroupJoinNewDynamicMember",
)
OFFERED_PROTOCOL: Final = Rule(
    rule_id="PX-JOIN-07",
    says="a member receives a protocol that it offered",
    source=_CLASSIC + "selectProtocol",
)
KEEPS_ID: Final = Rule(
    rule_id="PX-JOIN-08",
    says="a member that joins with an id keeps it",
    source=_JAVA + "classicGroupJoinExistingMember",
)
LEADER_ASSIGNS: Final = Rule(
    rule_id="PX-SYNC-01",
    says="a member receives the leader's assignment for it, or nothing if the leader sent nothing",
    source=_JAVA + "setAndPropagateAssignment",
)
FENCED_GENERATION: Final = Rule(
    rule_id="PX-FENCE-01",
    says="a member is not served in a generation older than one that its group has synced since",
    source=_JAVA + "validateClassicGroupHeartbeat, validateClassicGroupSync",
)
FENCED_ID: Final = Rule(
    rule_id="PX-FENCE-02",
    says="an id that was fenced, or was unknown before the last synced generation, is not served",
    source="KIP-345; " + _CLASSIC + "validateMember",
)
EVERY_PARTITION: Final = Rule(
    rule_id="PX-COMMIT-01",
    says="a commit or fetch is answered for each partition that it names, and for no other",
    source="clients/.../common/requests/OffsetCommitResponse, OffsetFetchResponse",
)
LAST_COMMIT: Final = Rule(
    rule_id="PX-FETCH-01",
    says="a fetch returns the last offset that was committed and answered, or one sent since",
    source="group-coordinator/.../OffsetMetadataManager.fetchOffsets",
    all_pass=True,
)

RULES: Final = (
    IN_ORDER,
    READABLE,
    THROTTLE,
    KNOWN_ERROR,
    GENERATION_COUNTS,
    GENERATION_GROWS,
    LEADER_SEES,
    ONE_PROTOCOL,
    ALL_LISTED,
    ID_REQUIRED,
    OFFERED_PROTOCOL,
    KEEPS_ID,
    LEADER_ASSIGNS,
    FENCED_GENERATION,
    FENCED_ID,
    EVERY_PARTITION,
    LAST_COMMIT,
)
"""Every rule, in the order of the documentation."""
