"""A running endpoint as a reference of programs: its versions, its settings, its sessions."""

from collections.abc import Mapping
from typing import Final

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim_conformance.differ.references import Reference, Tempo, offered_by
from coordinator_sim_conformance.targets.asked import (
    DELAY,
    LONGEST_SESSION,
    SHORTEST_SESSION,
)
from coordinator_sim_conformance.targets.endpoint import Endpoint
from coordinator_sim_conformance.wire.kio_bodies import entity_type

_TOLD: Final = (
    DELAY,
    SHORTEST_SESSION,
    LONGEST_SESSION,
    "group.max.size",
    "offset.metadata.max.bytes",
)
"""Settings that decide on answers."""
_USUAL: Final = {"offset.metadata.max.bytes": "4096"}
"""Kafka's default of what an endpoint does not tell."""
_NOT_OVER_THE_WIRE: Final = (
    *("fail", "verify", "hold", "commit", "elect", "append", "topics", "endTxn"),
    *("retention", "topic-ids", "TxnOffsetCommit", "no-group"),
)
"""What no client can ask for, or not without a transaction, or what others would see.

The empty id names one group for all programs, and for whoever else uses the endpoint.
"""
_WITHOUT_TOPICS: Final = (*_NOT_OVER_THE_WIRE, "OffsetCommit", "OffsetDelete")
"""The same for an endpoint that creates no topics."""
_SHORT_SESSIONS_MS: Final = (700, 1_200, 2_500)
_PATIENT_SESSIONS_MS: Final = (10_000, 30_000)


def live_reference(endpoint: Endpoint, profile: str) -> Reference:
    """Return what programs are drawn for.

    Args:
        endpoint: The endpoint.
        profile: Kafka that it is compared with; only its versions are asked for.
    """
    return reference_of(
        endpoint.name,
        profile,
        endpoint.versions,
        endpoint.settings,
        has_topics=creates_topics(endpoint),
    )


def reference_of(
    name: str,
    profile: str,
    versions: Mapping[str, tuple[int, int]],
    settings: Mapping[str, str],
    *,
    has_topics: bool = True,
) -> Reference:
    """Return a reference for real time.

    Args:
        name: Name in what is told.
        profile: Kafka that it is compared with.
        versions: Lowest and highest version of each API that it offers.
        settings: Its settings; the shortest session and the initial delay among them.
        has_topics: Whether topics can be created there.
    """
    told = _USUAL | {each: settings[each] for each in _TOLD if each in settings}
    return Reference(
        name=name,
        harness="",
        kafka_version="",
        profile=profile,
        versions=_versions(versions, profile),
        lacks=_NOT_OVER_THE_WIRE if has_topics else _WITHOUT_TOPICS,
        has_edge=True,
        tempo=_tempo(told),
        settings=told,
    )


def creates_topics(endpoint: Endpoint) -> bool:
    """Whether the endpoint's ApiVersions list CreateTopics."""
    return "CreateTopics" in endpoint.versions


def _versions(offered: Mapping[str, tuple[int, int]], profile: str) -> dict[str, tuple[int, int]]:
    """Return the versions of each API that all know: the endpoint, the profile, and the codec."""
    found = {}
    for api, (low, high) in offered_by(profile).items():
        first, last = offered.get(api, (1, 0))
        common = [
            version
            for version in range(max(low, first), min(high, last) + 1)
            if _can_be_sent(api, version)
        ]
        if common:
            found[api] = (common[0], common[-1])
    return found


def _can_be_sent(api: str, version: int) -> bool:
    try:
        entity_type(api, version, "Request")
    except UnsupportedVersion:
        return False
    return True


def _tempo(settings: dict[str, str]) -> Tempo:
    """Return short times, as far as the endpoint allows them."""
    shortest = int(settings[SHORTEST_SESSION])
    longest = int(settings.get(LONGEST_SESSION, _PATIENT_SESSIONS_MS[-1]))
    allowed = [each for each in _SHORT_SESSIONS_MS if shortest <= each <= longest]
    patient = [each for each in _PATIENT_SESSIONS_MS if shortest <= each <= longest]
    return Tempo(
        patient_sessions=tuple(patient or (longest,)),
        sessions=tuple(allowed or (shortest, *patient)),
        refused_session=shortest - 1,
        rebalances=(900, 2_000, 5_000, 60_000),
        short_waits=(100, 200, 300, 400),
        waits=(600, 900, 1_300),
        long_waits=(1_900, 2_700),
    )
