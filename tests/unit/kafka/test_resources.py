"""The names of what a group hands out."""

from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition, connector_resource


def test_names_tell_the_kinds_apart() -> None:
    """A partition, a task and a connector of one name have different resource names."""
    names = [
        TopicPartition("x", 0).resource(),
        ConnectorTaskId("x", 0).resource(),
        connector_resource("x"),
    ]
    assert names == ["p:x-0", "t:x-0", "c:x"]
