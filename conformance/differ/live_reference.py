"""A running endpoint as a reference of programs: its versions, its settings, its sessions."""

from typing import Final

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim_conformance.differ.references import Reference, Tempo, offered_by
from coordinator_sim_conformance.targets.endpoint import (
    DELAY,
    LONGEST_SESSION,
    SHORTEST_SESSION,
    Endpoint,
)
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
    *("retention", "topic-ids", "TxnOffsetCommit"),
)
"""What no client can ask for, or not without a transaction."""
_SHORT_SESSIONS_MS: Final = (700, 1_200, 2_500)
_PATIENT_SESSIONS_MS: Final = (10_000, 30_000)


def live_reference(endpoint: Endpoint, profile: str) -> Reference:
    """Return what programs are drawn for.

    Args:
        endpoint: The endpoint.
        profile: Kafka that it is compared with; only its versions are asked for.
    """
    told = {name: endpoint.settings[name] for name in _TOLD if name in endpoint.settings}
    settings = _USUAL | told
    return Reference(
        name=endpoint.name,
        harness="",
        kafka_version="",
        profile=profile,
        versions=_versions(endpoint, profile),
        lacks=_NOT_OVER_THE_WIRE,
        has_edge=True,
        tempo=_tempo(settings),
        settings=settings,
    )


def _versions(endpoint: Endpoint, profile: str) -> dict[str, tuple[int, int]]:
    """Return the versions of each API that all know: the endpoint, the profile, and the codec."""
    found = {}
    for api, (low, high) in offered_by(profile).items():
        first, last = endpoint.versions.get(api, (1, 0))
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
