"""The configuration of a Connect cluster as one worker has read it: an immutable snapshot.

Source: kafka trunk, connect/runtime/.../storage/ClusterConfigState.java.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.worker_coordinator import ConfigSnapshot
from coordinator_sim.connect.effects import TargetState
from coordinator_sim.connect.stores.config_records import SessionKey
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.kafka.resources import ConnectorTaskId

Properties = Mapping[str, str]
"""A connector's or a task's configuration."""


class ClusterConfigState(Struct, frozen=True, kw_only=True):
    """State of the config topic up to an offset.

    Args:
        offset: One past the last record read; -1 before any.
        session_key: Key for signatures; None when there is none yet.
        task_counts: Number of tasks last committed, also of inconsistent connectors.
        connector_configs: Configurations by connector, in the order of the map copied from.
        target_states: Target states by connector, also without a configuration.
        task_configs: Configurations in effect, by task.
        task_count_records: Number of tasks that may have to be fenced, by connector.
        task_config_generations: Number of commits of a connector's tasks, from 0.
        applied_connector_configs: Connector configurations that the tasks were made from.
        connectors_pending_fencing: Connectors whose tasks are newer than their task count record.
        inconsistent_connectors: Connectors whose last commit named missing tasks.
    """

    offset: int = -1
    session_key: SessionKey | None = None
    task_counts: Mapping[str, int] = {}
    connector_configs: Mapping[str, Properties] = {}
    target_states: Mapping[str, TargetState] = {}
    task_configs: Mapping[ConnectorTaskId, Properties] = {}
    task_count_records: Mapping[str, int] = {}
    task_config_generations: Mapping[str, int] = {}
    applied_connector_configs: Mapping[str, Properties] = {}
    connectors_pending_fencing: tuple[str, ...] = ()
    inconsistent_connectors: tuple[str, ...] = ()

    def contains(self, connector: str) -> bool:
        """Whether the connector is configured."""
        return connector in self.connector_configs

    def connectors(self) -> tuple[str, ...]:
        """Return the configured connectors, in the order of Java's copied map."""
        return java_copy_order(self.connector_configs)

    def connector_config(self, connector: str) -> Properties | None:
        """Return the connector's configuration; None when it is absent."""
        return self.connector_configs.get(connector)

    def applied_connector_config(self, connector: str) -> Properties | None:
        """Return the configuration that the connector's present tasks were made from."""
        return self.applied_connector_configs.get(connector)

    def target_state(self, connector: str) -> TargetState | None:
        """Return the connector's target state; None when it is absent."""
        return self.target_states.get(connector)

    def task_config(self, task: ConnectorTaskId) -> Properties | None:
        """Return the task's configuration in effect; None when it is absent."""
        return self.task_configs.get(task)

    def task_count(self, connector: str) -> int:
        """Return the number of tasks last committed, 0 when there never were any."""
        return self.task_counts.get(connector, 0)

    def tasks(self, connector: str) -> tuple[ConnectorTaskId, ...]:
        """Return the tasks to be run: none of an inconsistent connector."""
        if connector in self.inconsistent_connectors:
            return ()
        return tuple(ConnectorTaskId(connector, n) for n in range(self.task_count(connector)))

    def pending_fencing(self, connector: str) -> bool:
        """Whether older tasks may have to be fenced before the present ones start."""
        return connector in self.connectors_pending_fencing

    def task_count_record(self, connector: str) -> int | None:
        """Return the number of tasks in the last task count record."""
        return self.task_count_records.get(connector)

    def task_config_generation(self, connector: str) -> int | None:
        """Return how often task configurations took effect, from 0; None before the first time."""
        return self.task_config_generations.get(connector)

    def assignable(self) -> ConfigSnapshot:
        """Return what group membership needs: the offset, and the number of tasks by connector."""
        return ConfigSnapshot(
            offset=self.offset,
            connectors={name: len(self.tasks(name)) for name in self.connectors()},
        )


EMPTY_CONFIG_STATE: Final = ClusterConfigState()
"""ClusterConfigState.EMPTY: nothing read yet."""


def java_copy_order(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the keys in the order of `new HashMap<>(map)`, whose table is as small as possible.

    Source: java.util.HashMap.putMapEntries.
    """
    names = tuple(keys)
    wanted = len(names) * 4 // 3 + 1
    return tuple(java_hash_order(names, 1 << (wanted - 1).bit_length()))
