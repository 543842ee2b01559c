"""A coordinator's configuration as broker properties, and back."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.properties import configured, properties_of


def test_what_is_as_in_kafka_is_not_said() -> None:
    """The usual configuration has no properties of its own."""
    assert properties_of(CoordinatorConfig()) == {}


def test_a_retention_is_said_in_minutes_if_it_can_be() -> None:
    """Kafka has no word for a minute and a half; other settings are said as they are."""
    config = CoordinatorConfig(offsets_retention_ms=120_000, group_max_size=90)
    assert properties_of(config) == {"offsets.retention.minutes": "2", "group.max.size": "90"}
    assert properties_of(CoordinatorConfig(offsets_retention_ms=90_000)) == {}


@given(
    config=st.builds(
        CoordinatorConfig,
        offsets_retention_ms=st.integers(1, 100_000).map(lambda minutes: minutes * 60_000),
        offsets_retention_check_interval_ms=st.integers(1, 1 << 31),
        group_max_size=st.integers(1, 1 << 31),
        offset_metadata_max_bytes=st.integers(0, 1 << 20),
    )
)
def test_properties_give_the_configuration_back(config: CoordinatorConfig) -> None:
    """What was written is read again."""
    assert configured(CoordinatorConfig(), properties_of(config)) == config
