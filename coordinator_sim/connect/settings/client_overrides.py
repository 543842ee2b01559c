"""Policies for what a connector may override of its worker's client settings.

The classes are Kafka's own; others are refused.

Source: kafka 4.3, connect/runtime/.../connector/policy/*.java; AbstractHerder
.validateClientOverrides, connectorUsesProducer, connectorUsesAdmin, connectorUsesConsumer.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.settings.config_def import ConfigValue, Properties
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.orders.iteration_order import java_hash_order

_PACKAGE: Final = "org.apache.kafka.connect.connector.policy."
_SUFFIX: Final = "ConnectorClientConfigOverridePolicy"
_NAMES: Final = ("All", "None", "Principal", "Allowlist")
_PRINCIPAL: Final = ("sasl.jaas.config", "sasl.mechanism", "security.protocol")
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"


class OverridePolicy(Struct, frozen=True):
    """A policy.

    Args:
        name: As its messages call it.
        allowed: Settings that may be overridden; None for all.
    """

    name: str
    allowed: tuple[str, ...] | None

    def values(self, config: Properties, *, is_sink: bool) -> Iterator[ConfigValue]:
        """Yield each override of a connector's clients, with the refusal of one not allowed.

        DEVIATION: values are not parsed, and none has a definition.
        """
        for prefix in _prefixes(config, is_sink=is_sink):
            names = (name.removeprefix(prefix) for name in config if name.startswith(prefix))
            for name in java_hash_order(names):
                value = ConfigValue(prefix + name, config[prefix + name])
                if self.allowed is not None and name not in self.allowed:
                    value.errors.append(
                        f"The '{self.name}' policy does not allow '{name}' to be overridden in "
                        "the connector configuration."
                    )
                yield value


ALL: Final = OverridePolicy("All", None)
"""The policy of a worker whose settings name none."""


def override_policy(class_name: str, allowlist: str) -> OverridePolicy:
    """Return the policy of a class, or of an alias of one.

    Args:
        class_name: `connector.client.config.override.policy`.
        allowlist: `connector.client.config.override.allowlist`, names with commas.

    Raises:
        ConfigError: Kafka has no such policy.
    """
    name = class_name.removeprefix(_PACKAGE).removesuffix(_SUFFIX)
    if name not in _NAMES:
        raise ConfigError(
            f"connector.client.config.override.policy={class_name} is not built in; "
            f"use {', '.join(_NAMES[:-1])} or {_NAMES[-1]}"
        )
    allowed = {
        "All": None,
        "None": (),
        "Principal": _PRINCIPAL,
        "Allowlist": tuple(each.strip() for each in allowlist.split(",") if each.strip()),
    }
    return OverridePolicy(name, allowed[name])


def _prefixes(config: Properties, *, is_sink: bool) -> Iterator[str]:
    """Yield the prefixes of the clients that a connector has, in the order of validation."""
    has_dead_letters = bool((config.get(_DEAD_LETTERS) or "").strip())
    if not is_sink or has_dead_letters:
        yield "producer.override."
    creates_topics = any(name.startswith("topic.creation.") for name in config)
    if has_dead_letters if is_sink else creates_topics:
        yield "admin.override."
    if is_sink:
        yield "consumer.override."
