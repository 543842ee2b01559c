"""Pods of the rows of tests: a letter for each pod, and the levels of their metric."""

from typing import Final

from coordinator_sim.sim.autoscaling.replica_calculator import PodSample, Startup

NOW_MS: Final = 1_000_000
STARTUP: Final = Startup(cpu_initialization_ms=120_000, initial_readiness_ms=10_000)
"""The periods of Kubernetes' own tests: two minutes, and ten seconds."""
_KINDS: Final[dict[str, dict[str, object]]] = {
    "r": {},
    "u": {"is_ready": False},
    "h": {"started_ms": NOW_MS, "ready_changed_ms": NOW_MS, "usage_at_ms": NOW_MS},
    "H": {"is_ready": False, "started_ms": NOW_MS, "ready_changed_ms": NOW_MS},
    "x": {"is_ready": False, "phase": "Failed"},
    "d": {"is_ready": False, "is_deleted": True},
    "p": {"is_ready": False, "phase": "Pending"},
}
"""Ready, unready, just started (ready, not ready), failed, being deleted, pending."""


def pods_of(
    kinds: str, levels: tuple[int, ...], requests: tuple[int | None, ...] = ()
) -> list[PodSample]:
    """Return pods of these kinds; one beyond the levels has no metric, nor request by default."""
    return [
        PodSample(
            name=f"pod-{index}",
            usage=levels[index] if index < len(levels) else None,
            request=requests[index] if requests else 1_000,
            **_KINDS[kind],  # type: ignore[arg-type] # fields by name
        )
        for index, kind in enumerate(kinds)
    ]
