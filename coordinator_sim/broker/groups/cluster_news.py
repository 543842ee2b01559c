"""Passes changes of topics, and of settings that clients change, to group coordinators.

Source: kafka 4.4, BrokerMetadataPublisher.onMetadataUpdate; GroupConfigManager.updateGroupConfig;
DynamicBrokerConfig.
"""

from typing import Final

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.metadata.image import GROUP_RESOURCE, MetadataImage
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.coordinator.properties import PROPERTIES, configured
from coordinator_sim.coordinator.topics import KnownTopic

_OF_GROUPS: Final = "group."
"""A setting of a group has this before its name among those of brokers."""


class ClusterNews:
    """Tells coordinators of a cluster.

    Args:
        image: Its topics.
        configs: Its settings.
    """

    __slots__ = ("_configs", "_dynamic", "_image")

    def __init__(self, image: MetadataImage, configs: Configs) -> None:
        self._image = image
        self._configs = configs
        self._dynamic = [
            name for name in PROPERTIES if name in configs.broker and configs.broker[name].dynamic
        ]

    def tell_all(self, coordinator: GroupCoordinator) -> None:
        """Tell a coordinator that starts of every topic."""
        topics = [self._known(name) for name in self._image.topics]
        coordinator.topics_changed(topics, (), self._image.version)

    def tell_topic(self, coordinator: GroupCoordinator, name: str) -> None:
        """A topic is new, or has more partitions."""
        coordinator.topics_changed((self._known(name),), (), self._image.version)

    def tell_removed(self, coordinator: GroupCoordinator, name: str) -> None:
        """A topic is gone."""
        coordinator.topics_changed((), (name,), self._image.version)

    def tell_settings(
        self, coordinator: GroupCoordinator, config: CoordinatorConfig, group_id: str | None = None
    ) -> None:
        """Tell a coordinator what its broker goes by, and one group or all of them.

        Args:
            coordinator: It.
            config: What its broker started with.
            group_id: The group whose settings changed; None for all that have their own.
        """
        now = [(name, self._configs.broker_value(name)) for name in self._dynamic]
        broker = configured(config, {name: str(value) for name, value in now if value is not None})
        groups = self._groups() if group_id is None else (group_id,)
        coordinator.reconfigure(broker, {each: self._own(broker, each) for each in groups})

    def _groups(self) -> list[str]:
        """The groups with settings of their own."""
        return [name for kind, name in self._image.configs if kind == GROUP_RESOURCE]

    def _own(self, broker: CoordinatorConfig, group_id: str) -> CoordinatorConfig | None:
        values = self._image.configs_of(GROUP_RESOURCE, group_id)
        own = {f"{_OF_GROUPS}{name}": text for name, text in values.items()}
        return configured(broker, own) if own else None

    def _known(self, name: str) -> KnownTopic:
        """A topic as a coordinator knows it; brokers here have no racks."""
        state = self._image.topic(name)
        return KnownTopic(name, state.topic_id, len(state.partitions))
