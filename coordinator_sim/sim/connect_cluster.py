"""What the workers of one Connect cluster share: the config topic, and each worker's view of it.

The topic is kept as its latest snapshot and offset. A worker reads every record a little later
than it was written, in order; how much later follows the network's law.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final, Protocol

from coordinator_sim.clients.worker_coordinator import ConfigSnapshot
from coordinator_sim.connect.config_log import ConfigChange
from coordinator_sim.sim.world import World

_HOPS: Final = 2
"""A fetch that waits at the broker answers one way; producing the record took the other."""


class ConfigReaderProcess(Protocol):
    """A running worker, as far as it reads the config topic."""

    def configs_read(self, snapshot: ConfigSnapshot, change: ConfigChange) -> None:
        """The worker's view is now this snapshot; `change` says what the new records were."""
        ...


class ConnectCluster:
    """The config topic of one Connect cluster, and the writes that change its connectors.

    As in Connect, a new connector is a record of its own; its tasks are written once a worker has
    started the connector and asked for them (`connector_started`).

    Args:
        world: What the run shares.
        connectors: Task count of each connector that exists from the start.
    """

    __slots__ = ("_held_until_us", "_readers", "_task_counts", "_world", "snapshot")

    def __init__(self, world: World, connectors: Mapping[str, int]) -> None:
        self._world = world
        self._task_counts = dict(connectors)
        self._readers: dict[str, ConfigReaderProcess] = {}
        self._held_until_us: dict[str, int] = {}
        records = sum(_record_count(tasks) for tasks in connectors.values())
        self.snapshot = ConfigSnapshot(offset=records or -1, connectors=dict(connectors))
        """The topic to its end."""

    def follow(self, worker: str, reader: ConfigReaderProcess) -> None:
        """Tell a worker of every record from now on; it has read what there is."""
        self._readers[worker] = reader

    def unfollow(self, worker: str) -> None:
        """A worker's process has ended."""
        self._readers.pop(worker, None)

    def hold_back(self, worker: str, for_us: int) -> None:
        """Let a worker read no new record of the topic for so long."""
        self._held_until_us[worker] = self._world.environment.now_us + for_us

    def set_connector(self, connector: str, tasks: int) -> None:
        """Create a connector, or configure it for another number of tasks."""
        self._task_counts[connector] = tasks
        connectors = dict(self.snapshot.connectors)
        connectors.setdefault(connector, 0)
        self._write(1, connectors, ConfigChange(updated=(connector,)))

    def remove_connector(self, connector: str) -> None:
        """Delete a connector; nothing happens when there is none of that name."""
        if self._task_counts.pop(connector, None) is None:
            return
        connectors = dict(self.snapshot.connectors)
        connectors.pop(connector, None)
        # Tombstones of the connector's configuration and of its target state.
        self._write(2, connectors, ConfigChange(removed=(connector,)))

    def connector_started(self, connector: str) -> None:
        """A worker runs the connector and asks for its tasks; equal configurations are not written.

        Source: kafka trunk, DistributedHerder.reconfigureConnector.
        """
        tasks = self._task_counts.get(connector)
        if tasks is None or tasks == self.snapshot.connectors.get(connector):
            return
        connectors = {**self.snapshot.connectors, connector: tasks}
        self._write(tasks + 1, connectors, ConfigChange(reconfigured=(connector,)))

    def _write(self, records: int, connectors: dict[str, int], change: ConfigChange) -> None:
        offset = max(self.snapshot.offset, 0) + records
        self.snapshot = snapshot = ConfigSnapshot(offset=offset, connectors=connectors)
        environment = self._world.environment
        for worker in self._readers:
            lag_us = _HOPS * self._world.network.draw_us(f"config>{worker}")
            read_us = max(environment.now_us + lag_us, self._held_until_us.get(worker, 0))
            environment.call_at(read_us, partial(self._read, worker, snapshot, change))

    def _read(self, worker: str, snapshot: ConfigSnapshot, change: ConfigChange) -> None:
        reader = self._readers.get(worker)
        if reader is not None:
            reader.configs_read(snapshot, change)


def _record_count(tasks: int) -> int:
    """Records that configure a connector: its own, one a task, and the commit."""
    return tasks + 2
