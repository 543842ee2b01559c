"""Makes consumers of any modelled client, by the client's name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from coordinator_sim.assignors.contract import ConsumerAssignor
from coordinator_sim.clients.async_consumer import AsyncConsumer
from coordinator_sim.clients.backoff import NO_JITTER, Jitter
from coordinator_sim.clients.client_traits import FRANZ_GO, LIBRDKAFKA, ClientTraits
from coordinator_sim.clients.config import CLASSIC, ConsumerConfig
from coordinator_sim.clients.consumer_coordinator import ConsumerCoordinator
from coordinator_sim.clients.contract import ConsumerPort
from coordinator_sim.clients.franz_go import FranzGoConsumer
from coordinator_sim.clients.librdkafka import LibrdkafkaConsumer, LibrdkafkaNewConsumer
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

JAVA: Final = "java"
_TRAITS: Final = {traits.name: traits for traits in (LIBRDKAFKA, FRANZ_GO)}
_MODELS: Final[Mapping[str, Callable[..., ConsumerPort]]] = {
    LIBRDKAFKA.name: LibrdkafkaConsumer,
    FRANZ_GO.name: FranzGoConsumer,
}
_NEW_MODELS: Final[Mapping[str, Callable[..., ConsumerPort]]] = {
    JAVA: AsyncConsumer,
    LIBRDKAFKA.name: LibrdkafkaNewConsumer,
}
"""Members of the consumer protocol (KIP-848)."""
NEW_CLIENTS: Final = tuple(_NEW_MODELS)
"""Names of the clients that have `group.protocol=consumer`."""
CLIENTS: Final = (JAVA, *_MODELS)
"""Names of the clients; Java's is a port of its source, the others are models."""


def api_versions_of(client: str) -> Mapping[ApiKey, int]:
    """Return the versions that a client sends; empty for Java's, which sends the newest.

    Raises:
        ConfigError: an unknown client.
    """
    return {} if client == JAVA else _traits_of(client).api_versions


def _traits_of(client: str) -> ClientTraits:
    traits = _TRAITS.get(client)
    if traits is None:
        raise ConfigError(f"client {client!r} is unknown: must be one of {', '.join(CLIENTS)}")
    return traits


def make_consumer(  # noqa: PLR0913 - everything a client is configured with, by keyword
    client: str,
    settings: Mapping[str, str],
    *,
    client_id: str,
    group_id: str,
    topics: Sequence[str],
    assignors: Sequence[ConsumerAssignor],
    bootstrap: tuple[Node, ...],
    member_id: str,
    jitter: Jitter = NO_JITTER,
) -> ConsumerPort:
    """Return a consumer of the named client, not started yet.

    Args:
        client: One of `CLIENTS`.
        settings: Settings by Kafka's names; absent ones have that client's default.
            `group.protocol=consumer` makes a member of the consumer protocol.
        client_id: Names the client in random choices.
        group_id: The group.
        topics: Topics of the subscription.
        assignors: Assignors in order of preference; not read with `group.protocol=consumer`.
        bootstrap: Brokers to ask first.
        member_id: Id of a member that brings its own, as those of `group.protocol=consumer` do.
        jitter: Source of random choices.

    Raises:
        ConfigError: an unknown client, or settings or assignors that the client refuses.
    """
    if client == JAVA:
        config = ConsumerConfig.from_settings(settings)
        make: Callable[..., ConsumerPort] = ConsumerCoordinator
    else:
        config = _traits_of(client).config_from(settings)
        make = _MODELS[client]
    if config.group_protocol != CLASSIC:
        make_new = _NEW_MODELS.get(client)
        if make_new is None:
            raise ConfigError(
                f"client {client!r} is modelled with group.protocol=classic alone: remove "
                f"group.protocol={config.group_protocol}, or use one of {', '.join(NEW_CLIENTS)}"
            )
        return make_new(
            config,
            client_id=client_id,
            group_id=group_id,
            topics=topics,
            assignors=(),
            bootstrap=bootstrap,
            member_id=member_id,
            jitter=jitter,
        )
    return make(
        config,
        client_id=client_id,
        group_id=group_id,
        topics=topics,
        assignors=assignors,
        bootstrap=bootstrap,
        jitter=jitter,
    )
