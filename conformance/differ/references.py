"""The available Kafkas: how each is built and which versions it supports."""

from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_versions import versions_of
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.messages.requests import group_api_named


class Tempo(Struct, frozen=True, kw_only=True):
    """Times that programs draw from, in milliseconds.

    Args:
        patient_sessions: Session timeouts in worlds where sessions seldom end.
        sessions: Session timeouts in the others.
        refused_session: A session timeout below the shortest allowed one.
        rebalances: Rebalance timeouts; of 1, some become 0.
        short_waits: The most frequent waits.
        waits: Waits about as long as timers.
        long_waits: Waits longer than most timers.
    """

    patient_sessions: tuple[int, ...] = (10_000, 30_000)
    sessions: tuple[int, ...] = (6_000, 10_000, 3_000)
    refused_session: int = 50
    rebalances: tuple[int, ...] = (5_000, 20_000, 60_000, 1, 10_000)
    short_waits: tuple[int, ...] = (1, 2, 10, 19, 20, 21, 100, 399, 400, 500, 1_000)
    waits: tuple[int, ...] = (2_999, 3_000, 3_001, 5_000, 6_000, 8_000, 10_000)
    long_waits: tuple[int, ...] = (12_000, 20_000, 30_000, 60_000, 61_000, 300_000, 600_000)


class Reference(Struct, frozen=True, kw_only=True):
    """One Kafka that programs are drawn for: its own coordinator behind the line protocol, or live.

    Args:
        name: Value of `--reference`.
        harness: Folder of `conformance/oracle` that builds it.
        kafka_version: Version of the artefacts it is built from.
        profile: Profile of ours that must behave like it.
        versions: Lowest and highest version of each API.
        producer_generation: Field name of the member's generation in TxnOffsetCommit.
        main_class: Main class of the harness.
        lacks: Events that the harness cannot produce.
        has_epochs: Whether leader epochs order elections and resignations.
        unknown_errors: Append errors without a name in this Kafka.
        static_members_join_from: Lowest JoinGroup version of all members if some are static.
        lingers_ms: Values of group.coordinator.append.linger.ms that a program may set; None for
            the default.
        waits_for_deletions: Whether it blocks until the writes of a topic deletion are committed,
            which never happens with a lingering batch.
        has_edge: Whether every request passes KafkaApis itself before the coordinator.
        tempo: Times that programs draw from.
        settings: Broker settings of all its worlds; None lets every program draw its own.
        has_share_coordinator: Whether its harness has the share coordinator too.
    """

    name: str
    harness: str
    kafka_version: str
    profile: str
    versions: dict[str, tuple[int, int]]
    producer_generation: str = "generationId"
    main_class: str = "org.apache.kafka.coordinator.group.Oracle"
    lacks: tuple[str, ...] = ()
    has_epochs: bool = True
    unknown_errors: tuple[str, ...] = ()
    static_members_join_from: int = 0
    lingers_ms: tuple[int | None, ...] = (None,)
    waits_for_deletions: bool = False
    has_edge: bool = False
    tempo: Tempo = Tempo()
    settings: dict[str, str] | None = None
    has_share_coordinator: bool = False

    @property
    def deletions_wait(self) -> bool:
        """Whether the deletion of a topic blocks until its tombstones are committed."""
        return PROFILES[self.profile].has_coordinator_runtime


_COMMON: Final = {
    "JoinGroup": (0, 9),
    "SyncGroup": (0, 5),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "OffsetCommit": (2, 10),
    "OffsetFetch": (1, 10),
    "OffsetDelete": (0, 0),
    "TxnOffsetCommit": (0, 5),
    "DescribeGroups": (0, 6),
    "ListGroups": (0, 5),
    "DeleteGroups": (0, 2),
    "ConsumerGroupHeartbeat": (0, 1),
    "ConsumerGroupDescribe": (0, 1),
}
_SHARES: Final = {
    "ShareGroupHeartbeat": (1, 1),
    "ShareGroupDescribe": (1, 1),
    "AlterShareGroupOffsets": (0, 0),
    "DeleteShareGroupOffsets": (0, 0),
}
"""Share groups, from 4.2 on."""
_STREAMS_0: Final = {"StreamsGroupHeartbeat": (0, 0), "StreamsGroupDescribe": (0, 0)}
_STREAMS_1: Final = {"StreamsGroupHeartbeat": (0, 1), "StreamsGroupDescribe": (0, 1)}
_NAMED_TOPICS: Final = {"OffsetCommit": (2, 9), "OffsetFetch": (1, 9)}
"""Versions before 4.2, without topic ids."""
_SELDOM: Final = (None, None, None, None, 5, 40)
_OFTEN: Final = (None, None, None, 0, 40)
_IN_THE_LOG: Final = {"OffsetCommit": 1, "OffsetFetch": 1}
"""First version that keeps offsets in Kafka. Source: KafkaApis, header.apiVersion == 0."""


def offered_by(profile: str) -> dict[str, tuple[int, int]]:
    """Return the group APIs of a broker, without the versions that keep offsets in ZooKeeper."""
    offered = versions_of(PROFILES[profile])
    found = {api: offered.get(group_api_named(api)) for api in _COMMON}
    return {
        api: (max(versions[0], _IN_THE_LOG.get(api, 0)), versions[1])
        for api, versions in found.items()
        if versions is not None
    }


REFERENCES: Final = {
    reference.name: reference
    for reference in (
        # TxnOffsetCommit 6 has topic ids, which KafkaApis resolves and the harness does not.
        Reference(
            name="kafka-4.4.0",
            harness="java",
            kafka_version="4.4.0",
            lingers_ms=_SELDOM,
            waits_for_deletions=True,
            profile="4.4",
            has_share_coordinator=True,
            versions=_COMMON | _SHARES | _STREAMS_1 | {"DeleteGroups": (0, 3)},
            producer_generation="generationIdOrMemberEpoch",
        ),
        Reference(
            name="kafka-4.3.1",
            harness="java",
            kafka_version="4.3.1",
            lingers_ms=_SELDOM,
            waits_for_deletions=True,
            profile="4.3",
            has_share_coordinator=True,
            versions=_COMMON | _SHARES | _STREAMS_0,
        ),
        Reference(
            name="kafka-4.2.1",
            harness="java",
            kafka_version="4.2.1",
            lingers_ms=_SELDOM,
            profile="4.2",
            versions=_COMMON | _SHARES | _STREAMS_0,
        ),
        Reference(
            name="kafka-4.1.2",
            harness="java",
            kafka_version="4.1.2",
            lingers_ms=_OFTEN,
            profile="4.1",
            versions=_COMMON | _NAMED_TOPICS,
        ),
        Reference(
            name="kafka-4.0.2",
            harness="java",
            kafka_version="4.0.2",
            lingers_ms=_OFTEN,
            profile="4.0",
            versions=_COMMON | _NAMED_TOPICS,
        ),
        Reference(
            name="kafka-3.9.2",
            harness="scala",
            kafka_version="3.9.2",
            profile="3.9",
            versions=_COMMON
            | {
                # KafkaApis handles version 0, and this harness lacks it.
                "OffsetCommit": (1, 9),
                "OffsetFetch": (1, 9),
                "TxnOffsetCommit": (0, 4),
                "DescribeGroups": (0, 5),
            },
        ),
        Reference(
            name="kafka-2.8.2",
            harness="scala28",
            kafka_version="2.8.2",
            profile="2.8",
            versions=offered_by("2.8"),
            main_class="kafka.coordinator.group.Oracle",
            lacks=("verify",),
            # KAFKA-14422: an older leader's answer is truncated where a static member is named.
            static_members_join_from=5,
            has_edge=True,
        ),
        Reference(
            name="kafka-0.10.2.2",
            harness="legacy",
            kafka_version="0.10.2.2",
            profile="0.10.2",
            versions=offered_by("0.10.2"),
            main_class="kafka.coordinator.Oracle",
            lacks=("verify", "endTxn"),
            # A partition that is elected while it is led would get a second set of groups.
            has_epochs=False,
            unknown_errors=("KAFKA_STORAGE_ERROR",),
            has_edge=True,
        ),
    )
}
"""Every reference by its name, newest first."""


def reference_named(name: str) -> Reference:
    """Return the reference of that name.

    Raises:
        ConfigError: the name is unknown; the message lists the known names.
    """
    reference = REFERENCES.get(name)
    if reference is None:
        raise ConfigError(f"unknown reference {name!r}: use one of {', '.join(REFERENCES)}")
    return reference
