"""The broker of most tests in this folder: one offsets partition, no initial delay."""

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.profiles import profile_named


def world_of(
    profile: str = "4.4", *, elect: bool = True, started: bool = True, **settings: object
) -> Harness:
    """Make such a broker, whose time begins at 0 ms.

    Args:
        profile: Profile of Kafka to be.
        elect: Whether it leads its partition.
        started: Whether its coordinator takes requests; one that does not leads nothing.
        settings: Fields of `CoordinatorConfig`.
    """
    usual = {"offsets_topic_num_partitions": 1, "group_initial_rebalance_delay_ms": 0}
    config = CoordinatorConfig(**{**usual, **settings})  # type: ignore[arg-type]
    known = profile_named(profile)
    return Harness(config, known, start_ms=0, elect=elect and started, started=started)
