"""Limits of connections to a broker: their number, and how long an idle one stays open.

DEVIATION: Kafka accepts no more connections while a limit of `max.connections` is reached; here a
connection above the limit is closed.

Source: kafka trunk, SocketServer.scala (ConnectionQuotas); Selector.java (IdleExpiryManager).
"""

from collections import Counter
from collections.abc import Hashable
from typing import Final

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.java_numbers import java_int

_LARGEST: Final = (1 << 31) - 1


class ConnectionLimits:
    """The limits of one broker, and its counted connections.

    Args:
        configs: The cluster's settings.
        broker_id: Id of the broker.

    Raises:
        ConfigError: an override has a wrong syntax.
    """

    def __init__(self, configs: Configs, broker_id: int) -> None:
        self._configs = configs
        self._broker_id = broker_id
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._counted: dict[Hashable, tuple[str, str]] = {}
        self._overrides = _overrides(self._value("max.connections.per.ip.overrides"))

    @property
    def idle_s(self) -> float | None:
        """How long a connection may be idle, in seconds; None for ever."""
        idle_ms = self._value("connections.max.idle.ms")
        return idle_ms / 1000 if isinstance(idle_ms, int) and idle_ms >= 0 else None

    def refusal(self, host: str, listener: str) -> str | None:
        """Why another connection is refused; None if it is not."""
        most = self._overrides.get(host, self._number("max.connections.per.ip"))
        if self._by_host[host] >= most:
            return f"more than {most} connections of {host}"
        if self._by_listener.total() >= self._number("max.connections"):
            return f"more than {self._number('max.connections')} connections"
        of_listener = self._configs.listener_value(listener, "max.connections")
        if isinstance(of_listener, int) and self._by_listener[listener] >= of_listener:
            return f"more than {of_listener} connections of listener {listener}"
        return None

    def opened(self, connection: Hashable, host: str, listener: str) -> None:
        """Start counting a connection."""
        self._counted[connection] = (host, listener)
        self._by_host[host] += 1
        self._by_listener[listener] += 1

    def closed(self, connection: Hashable) -> None:
        """Stop counting a connection; unknown ones are ignored."""
        found = self._counted.pop(connection, None)
        if found is not None:
            self._by_host[found[0]] -= 1
            self._by_listener[found[1]] -= 1
            self._by_host += Counter()

    def _value(self, name: str) -> object:
        return self._configs.broker_value(name, self._broker_id)

    def _number(self, name: str) -> int:
        value = self._value(name) if name in self._configs.broker else None
        return value if isinstance(value, int) else _LARGEST


def _overrides(text: object) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in str(text or "").split(","):
        host, colon, count = entry.strip().rpartition(":")
        if not entry.strip():
            continue
        number = java_int(count)
        if not colon or number is None or number < 0:
            raise ConfigError(f"max.connections.per.ip.overrides {entry!r}: wants HOST:COUNT")
        found[host] = number
    return found
