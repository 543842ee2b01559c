"""The nodes of a cluster as Trogdor's configuration file names them.

Source: kafka trunk, trogdor/.../trogdor: basic/BasicTopology.java, BasicNode.java;
common/Topology.java, Node.java, Platform.java.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError

AGENT_PORT: Final = "trogdor.agent.port"
COORDINATOR_PORT: Final = "trogdor.coordinator.port"
DEFAULT_AGENT_PORT: Final = 8888
DEFAULT_COORDINATOR_PORT: Final = 8889
_HIGHEST_PORT: Final = 65_535


class Node(Struct, frozen=True):
    """A node.

    Args:
        name: Its name in tasks.
        hostname: Where it is reached.
        tags: Free words.
        config: Its other settings.
    """

    name: str
    hostname: str = "localhost"
    tags: frozenset[str] = frozenset()
    config: Mapping[str, str] = {}

    @property
    def has_agent(self) -> bool:
        """Whether tasks for all agents run here: the port is named, whatever it is."""
        return AGENT_PORT in self.config

    @property
    def agent_port(self) -> int:
        """Port of its agent; a node without the setting is thought to have one too.

        Raises:
            ConfigError: the setting is no port.
        """
        return self._port(AGENT_PORT, DEFAULT_AGENT_PORT)

    @property
    def coordinator_port(self) -> int:
        """Port of the coordinator, if it is here.

        Raises:
            ConfigError: the setting is no port.
        """
        return self._port(COORDINATOR_PORT, DEFAULT_COORDINATOR_PORT)

    def _port(self, key: str, default: int) -> int:
        value = self.config.get(key)
        if value is None:
            return default
        if not value.lstrip("-").isdecimal() or int(value) > _HIGHEST_PORT:
            raise ConfigError(
                f"node {self.name!r}: {key} is {value!r}; give a port from 0 to {_HIGHEST_PORT}"
            )
        return int(value)


class Topology(Struct, frozen=True):
    """All nodes, by name."""

    nodes: Mapping[str, Node]

    def managed(self) -> list[Node]:
        """The nodes whose agent is asked how it is, in the order of their names."""
        return [self.nodes[name] for name in sorted(self.nodes) if self.nodes[name].agent_port > 0]

    def agent_names(self) -> set[str]:
        """The nodes that tasks for all agents run on."""
        return {name for name, node in self.nodes.items() if node.has_agent}


def topology_of(nodes: Mapping[str, Mapping[str, object]]) -> Topology:
    """The topology that the `nodes` of a configuration file describe.

    Args:
        nodes: Node name -> its settings: `hostname`, `tags`, and others.

    Raises:
        ConfigError: a setting is no text, or `tags` no list.
    """
    return Topology({name: _node(name, settings) for name, settings in nodes.items()})


def _node(name: str, settings: Mapping[str, object]) -> Node:
    tags = settings.get("tags", [])
    if not isinstance(tags, list):
        raise ConfigError(f"node {name!r}: tags is {tags!r}; give a list of words")
    config: dict[str, str] = {}
    for key, value in settings.items():
        if key == "tags":
            continue
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ConfigError(f"node {name!r}: {key} is {value!r}; give a text or a number")
        config[key] = str(value)
    hostname = config.pop("hostname", "localhost")
    return Node(name, hostname, frozenset(map(str, tags)), config)
