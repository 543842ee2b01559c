"""The APIs of KIP-848 groups, answered as by brokers with `group.version` 0: not supported.

Kafka's brokers from 3.9 on offer the two APIs even if such groups are off: clients learn that from
the answer, not from the offered versions. Nothing else of these groups is implemented.

Source: kafka 3.9 to 4.4, KafkaApis.handleConsumerGroupHeartbeat and handleConsumerGroupDescribe,
which check the feature before authorization; ConsumerGroupHeartbeatRequest and
ConsumerGroupDescribeRequest.getErrorResponse.
"""

from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


class NewGroupsApi:
    """Answers ConsumerGroupHeartbeat and ConsumerGroupDescribe."""

    __slots__ = ()

    def handlers(self) -> Handlers:
        """Handlers of ConsumerGroupHeartbeat and ConsumerGroupDescribe."""
        return {
            ApiKey.CONSUMER_GROUP_HEARTBEAT: self._heartbeat,
            ApiKey.CONSUMER_GROUP_DESCRIBE: self._describe,
        }

    def _heartbeat(
        self, _call: Call[ConsumerGroupHeartbeatRequest]
    ) -> ConsumerGroupHeartbeatResponse:
        """Answer UNSUPPORTED_VERSION without a message; no field of the request is echoed."""
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)

    def _describe(self, call: Call[ConsumerGroupDescribeRequest]) -> ConsumerGroupDescribeResponse:
        """Answer UNSUPPORTED_VERSION without a message for each group, in request order."""
        error = ErrorCode.UNSUPPORTED_VERSION
        return ConsumerGroupDescribeResponse(
            groups=tuple(
                DescribedGroup(error_code=error, group_id=each) for each in call.request.group_ids
            )
        )
