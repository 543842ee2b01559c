"""Settings and listeners of a served cluster from a broker's `server.properties`."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from coordinator_sim.broker.settings import PROPERTY_FIELDS, ClusterSettings
from coordinator_sim.coordinator.properties import configured
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.server.kafka_server import Listen

_TRUTHS: Final = {"true": True, "false": False}
_LISTENER: Final = re.compile(r"([A-Za-z0-9_]+)://(\[[^\]]*\]|[^:/]*):(\d+)")
_MAX_PORT: Final = 65_535


def with_properties(base: ClusterSettings, properties: Mapping[str, str]) -> ClusterSettings:
    """The settings of a cluster with these properties, by Kafka's names.

    Raises:
        ConfigError: a value is not valid for its setting.
    """
    fields: dict[str, int | bool] = {}
    for name, value in properties.items():
        field = PROPERTY_FIELDS.get(name)
        if field is not None:
            is_truth = isinstance(getattr(base, field), bool)
            fields[field] = (_truth if is_truth else _number)(name, value)
    return replace(
        base,
        coordinator=configured(base.coordinator, properties),
        given={**base.given, **properties},
        **fields,
    )


def listeners_of(brokers: tuple[int, ...], listeners: str, advertised: str) -> tuple[Listen, ...]:
    """The listeners of every broker, from the texts of `listeners` and `advertised.listeners`.

    The ports are the first broker's; the other brokers have the next ones. Port 0 is any free port.

    Raises:
        ConfigError: a text has a wrong syntax, a name comes twice, or an advertised listener does
            not exist.
    """
    bound, told = _parsed("listeners", listeners), _parsed("advertised.listeners", advertised)
    foreign = [name for name in told if name not in bound]
    if foreign:
        raise ConfigError(f"advertised.listeners has {foreign[0]}, which listeners has not")
    found = []
    for place, broker_id in enumerate(brokers):
        for name, (host, port) in bound.items():
            advertised_host, advertised_port = told.get(name, ("", 0))
            found.append(
                Listen(
                    broker_id=broker_id,
                    host=host,
                    port=_follows(port, place),
                    name=name,
                    advertised_host=advertised_host,
                    advertised_port=_follows(advertised_port, place),
                )
            )
    return tuple(found)


def _follows(port: int, place: int) -> int:
    if port + place > _MAX_PORT:
        raise ConfigError(f"broker {place + 1} would have port {port + place}: choose a lower one")
    return port + place if port else 0


def _parsed(setting: str, text: str) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        matched = _LISTENER.fullmatch(part)
        port = None if matched is None else java_int(matched[3])
        if matched is None or port is None or port > _MAX_PORT:
            raise ConfigError(f"{setting} {part!r}: wants NAME://HOST:PORT")
        if matched[1].upper() in found:
            raise ConfigError(f"{setting} has {matched[1]} twice")
        found[matched[1].upper()] = (matched[2].strip("[]") or "0.0.0.0", port)  # noqa: S104 - as Kafka reads an empty host
    return found


def _number(name: str, value: str) -> int:
    number = java_int(value)
    if number is None or number < 1:
        raise ConfigError(f"{name}={value}: must be a whole number from 1 on")
    return number


def _truth(name: str, value: str) -> bool:
    if value.lower() not in _TRUTHS:
        raise ConfigError(f"{name}={value}: must be true or false")
    return _TRUTHS[value.lower()]
