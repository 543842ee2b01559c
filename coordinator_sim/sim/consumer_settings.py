"""The settings of one consumer of a scenario."""

from collections.abc import Mapping

from coordinator_sim.clients.config import CONSUMER
from coordinator_sim.sim.scenario.world import ConsumerGroupSpec, ConsumerSpec


def is_new(settings: Mapping[str, str]) -> bool:
    """Whether a consumer's settings make it a member of the consumer protocol (KIP-848)."""
    return settings.get("group.protocol") == CONSUMER


def client_settings(spec: ConsumerSpec, group: ConsumerGroupSpec) -> dict[str, str]:
    """Return the settings of one consumer by Kafka's names, its own over its group's.

    A run's topics start with the run: unless a setting says otherwise they are read from their
    beginning, not from their present end as with Kafka's default `latest`.
    """
    settings = {"auto.offset.reset": "earliest", **group.settings, **spec.settings}
    if spec.commits.when != "auto":
        settings["enable.auto.commit"] = "false"
    if spec.instance_id is not None:
        settings["group.instance.id"] = spec.instance_id
    if spec.rack is not None:
        settings["client.rack"] = spec.rack
    return settings
