"""Which protocols of groups a cluster offers now, and what it answers where one is off.

Brokers offer the APIs of a protocol also where it is off: clients learn that from the finalized
features, or from the answers.

Source: kafka 4.4, KafkaApis.isConsumerGroupProtocolEnabled, isStreamsGroupProtocolEnabled and
isShareGroupProtocolEnabled; ConsumerGroupHeartbeatRequest.getErrorResponse.
"""

from collections.abc import Callable
from enum import Enum, unique
from typing import Final

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

PROTOCOLS: Final = "group.coordinator.rebalance.protocols"


@unique
class GroupProtocol(Enum):
    """A protocol that a feature switches on, by its name in `PROTOCOLS`."""

    CONSUMER = "consumer"
    STREAMS = "streams"
    SHARE = "share"


_FEATURES: Final = {
    GroupProtocol.CONSUMER: "group.version",
    GroupProtocol.STREAMS: "streams.version",
    GroupProtocol.SHARE: "share.version",
}
"""The feature of each protocol; level 0 is off."""

Offers = Callable[[GroupProtocol], bool]
"""Whether a protocol is on now."""


class GroupProtocols:
    """The protocols of a cluster.

    Args:
        profile: Its Kafka version; the Scala coordinator has none of these protocols.
        image: Its finalized features.
        configs: Its settings.
    """

    __slots__ = ("_configs", "_image", "_profile")

    def __init__(self, profile: Profile, image: MetadataImage, configs: Configs) -> None:
        self._profile = profile
        self._image = image
        self._configs = configs

    def offers(self, protocol: GroupProtocol) -> bool:
        """Whether a protocol is on now: its feature is, and the brokers' settings name it.

        Share groups need the feature alone: `PROTOCOLS` may name them, and nobody asks.
        """
        if not self._profile.has_coordinator_runtime:
            return False
        if self._image.features.get(_FEATURES[protocol], 0) == 0:
            return False
        if protocol is GroupProtocol.SHARE:
            return True
        named = self._configs.broker_value(PROTOCOLS)
        return isinstance(named, list) and protocol.value in named


def offers_of(profile: Profile) -> Offers:
    """All that a Kafka version has is on: of a broker without a cluster around it."""

    def offers(protocol: GroupProtocol) -> bool:
        if protocol is GroupProtocol.SHARE:
            return profile.share_groups
        return profile.has_coordinator_runtime

    return offers


def unsupported_heartbeat() -> ConsumerGroupHeartbeatResponse:
    """UNSUPPORTED_VERSION without a message; no field of the request is echoed."""
    return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
