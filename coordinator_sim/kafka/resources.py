"""Things that a group hands out, under one name each.

A consumer's partition is `p:{topic}-{n}`, a connector `c:{name}`, a Connect task `t:{name}-{n}`, an
active task of a streams group `s:{subtopology}_{n}`.
"""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic; orders by topic, then partition."""

    topic: str
    partition: int

    def resource(self) -> str:
        """The partition's resource name."""
        return f"p:{self.topic}-{self.partition}"


class ConnectorTaskId(NamedTuple):
    """A task of a connector; orders by connector, then task."""

    connector: str
    task: int

    def resource(self) -> str:
        """The task's resource name."""
        return f"t:{self.connector}-{self.task}"


class StreamsTaskId(NamedTuple):
    """A task of a streams group, written as Kafka Streams writes it: `0_3`."""

    subtopology: str
    task: int

    def resource(self) -> str:
        """The task's resource name."""
        return f"s:{self.subtopology}_{self.task}"


def connector_resource(connector: str) -> str:
    """The resource name of a connector itself."""
    return f"c:{connector}"
