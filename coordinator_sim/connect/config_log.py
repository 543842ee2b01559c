"""A worker's view of the config topic, and what changed between two views."""

from typing import Protocol

from msgspec import Struct

from coordinator_sim.clients.worker_coordinator import ConfigSnapshot


class ConfigLog(Protocol):
    """What one worker has read of the config topic; may lag behind the log's end."""

    def snapshot(self) -> ConfigSnapshot:
        """The present view."""
        ...


class ConfigChange(Struct, frozen=True, kw_only=True):
    """Records a worker read, as its listener hears of them.

    Args:
        removed: Connectors deleted.
        updated: Connectors whose configuration was written, new ones included.
        reconfigured: Connectors whose task configurations were committed.
    """

    removed: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    reconfigured: tuple[str, ...] = ()


def change_between(old: ConfigSnapshot, new: ConfigSnapshot) -> ConfigChange:
    """What two views tell of the records between them.

    Writes that leave a connector's task count alone are invisible here; who writes them knows.
    """
    return ConfigChange(
        removed=tuple(name for name in old.connectors if name not in new.connectors),
        updated=tuple(name for name in new.connectors if name not in old.connectors),
        reconfigured=tuple(
            name
            for name, task_count in new.connectors.items()
            if task_count != old.connectors.get(name, 0)
        ),
    )
