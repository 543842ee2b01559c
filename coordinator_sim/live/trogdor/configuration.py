"""Trogdor's configuration file, and specs on a command line.

Source: kafka trunk, trogdor/.../trogdor/common: Platform.java, JsonUtil.java
(objectFromCommandLineArgument).
"""

from pathlib import Path
from typing import Final

from coordinator_sim.errors import ConfigError
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.topology import Topology, topology_of

PLATFORM: Final = "org.apache.kafka.trogdor.basic.BasicPlatform"
"""The one platform that there is."""


def read_configuration(path: Path) -> Topology:
    """The nodes of a configuration file, `{"platform": ..., "nodes": {...}}`.

    Raises:
        ConfigError: it cannot be read, or says something else.
    """
    try:
        said = jackson.read_tree(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except TrogdorRefusal as refusal:
        raise ConfigError(f"{path}: {refusal.message}") from None
    if not isinstance(said, dict):
        raise ConfigError(f"{path}: no JSON object; begin with {{")
    platform = said.get("platform")
    if platform != PLATFORM:
        raise ConfigError(f"{path}: platform is {platform!r}; give {PLATFORM}")
    nodes = said.get("nodes")
    if not isinstance(nodes, dict) or not all(isinstance(each, dict) for each in nodes.values()):
        raise ConfigError(f'{path}: nodes is no object of nodes, such as {{"node0": {{}}}}')
    return topology_of(nodes)


def read_spec(argument: str) -> TaskSpec:
    """The spec in an argument that begins with a brace, otherwise in the file of that name.

    Raises:
        ConfigError: there is no such file, or no task spec in it.
    """
    origin = "task spec"
    text: str | bytes = argument
    if not argument.lstrip().startswith("{"):
        origin = argument
        try:
            text = Path(argument).read_bytes()
        except OSError as error:
            raise ConfigError(f"{argument}: {error.strerror}") from None
    try:
        return jackson.read(text, TaskSpec)
    except TrogdorRefusal as refusal:
        raise ConfigError(f"{origin}: {refusal.message}") from None
