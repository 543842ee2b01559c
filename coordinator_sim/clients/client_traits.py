"""Values in which other clients differ from Java's.

A client that differs in the order of steps has a module of its own. Settings keep Kafka's names;
a setting absent from `default_settings` has Java's default.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.kafka.api_keys import ApiKey


class ClientTraits(Struct, frozen=True, kw_only=True):
    """Values in which one client differs.

    Args:
        name: Name of the client in scenarios.
        default_settings: Defaults that differ from Java's, by Kafka's names.
        api_versions: The newest version that the client sends, by API.
        rack_when_unset: Rack in the subscription of a client without one.
        join_timeout_lapse_ms: Time a JoinGroup may take beyond the rebalance timeout.
        leave_timeout_ms: Time limit for the answer to a LeaveGroup.
        callbacks_need_poll: Whether rebalance callbacks run only while the application polls.
        has_assignors: Whether members offer assignors; the consumer protocol assigns on the server.
    """

    name: str
    default_settings: Mapping[str, str]
    api_versions: Mapping[ApiKey, int]
    rack_when_unset: str | None
    join_timeout_lapse_ms: int
    leave_timeout_ms: int
    callbacks_need_poll: bool
    has_assignors: bool = True

    def config_from(self, settings: Mapping[str, str]) -> ConsumerConfig:
        """Return the settings of a consumer of this client.

        Raises:
            ConfigError: an unknown key, a value of the wrong kind, or one out of bounds.
        """
        return ConsumerConfig.from_settings({**self.default_settings, **settings})


LIBRDKAFKA: Final = ClientTraits(
    name="librdkafka",
    default_settings={
        "request.timeout.ms": "60000",
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "50",
        "socket.connection.setup.timeout.ms": "30000",
    },
    api_versions={
        ApiKey.METADATA: 13,
        ApiKey.OFFSET_COMMIT: 9,
        ApiKey.OFFSET_FETCH: 9,
        ApiKey.FIND_COORDINATOR: 2,
        ApiKey.JOIN_GROUP: 5,
        ApiKey.HEARTBEAT: 3,
        ApiKey.LEAVE_GROUP: 1,
        ApiKey.SYNC_GROUP: 3,
        ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    },
    rack_when_unset="",
    join_timeout_lapse_ms=3_000,
    leave_timeout_ms=5_000,
    callbacks_need_poll=True,
)
"""librdkafka 2.16. Its request timeout is `socket.timeout.ms`.

Its `reconnect.backoff.ms` is 100 and grows; but while a broker is needed and none is up, one is
tried every half of that.

Source: librdkafka 2.15, rdkafka_conf.c, rdkafka_request.c (JoinGroupRequest, LeaveGroupRequest);
rdkafka.c, sparse_connect_intvl.
"""

LIBRDKAFKA_CONSUMER: Final = msgspec.structs.replace(LIBRDKAFKA, has_assignors=False)
"""librdkafka 2.16 with `group.protocol=consumer`."""

FRANZ_GO: Final = ClientTraits(
    name="franz-go",
    default_settings={
        "max.poll.interval.ms": "60000",
        "request.timeout.ms": "10000",
        "retry.backoff.ms": "250",
        "retry.backoff.max.ms": "5000",
        "reconnect.backoff.ms": "0",
        "reconnect.backoff.max.ms": "0",
    },
    api_versions={
        ApiKey.METADATA: 13,
        ApiKey.OFFSET_COMMIT: 10,
        ApiKey.OFFSET_FETCH: 10,
        ApiKey.FIND_COORDINATOR: 6,
        ApiKey.JOIN_GROUP: 9,
        ApiKey.HEARTBEAT: 4,
        ApiKey.LEAVE_GROUP: 5,
        ApiKey.SYNC_GROUP: 5,
    },
    rack_when_unset=None,
    join_timeout_lapse_ms=10_000,
    leave_timeout_ms=10_000,
    callbacks_need_poll=False,
)
"""franz-go 1.22. `max.poll.interval.ms` is its rebalance timeout: it does not watch polls.

Source: franz-go 1.22, pkg/kgo/config.go (defaultCfg), client.go (connTimeouter).
"""

JAVA_ASYNC: Final = ClientTraits(
    name="java",
    default_settings={},
    api_versions={},
    rack_when_unset=None,
    join_timeout_lapse_ms=0,
    leave_timeout_ms=0,
    callbacks_need_poll=True,
    has_assignors=False,
)
"""Java's consumer with `group.protocol=consumer`: neither JoinGroup nor LeaveGroup is ever sent."""
