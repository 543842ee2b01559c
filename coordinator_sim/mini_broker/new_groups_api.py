"""Groups of KIP-848 as brokers answer for them that have `group.version` at 0: not supported.

Kafka's brokers from 3.9 on offer the two APIs whether or not such groups are switched on: clients
learn from the answer, not from the versions, that they are off. Nothing else of these groups is
here.

Source: kafka 3.9 to 4.4, KafkaApis.handleConsumerGroupHeartbeat and handleConsumerGroupDescribe,
which ask for the feature before they ask for rights; ConsumerGroupHeartbeatRequest and
ConsumerGroupDescribeRequest.getErrorResponse.
"""

from coordinator_sim.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.mini_broker.contract import Call, Handlers
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode


class NewGroupsApi:
    """Answers ConsumerGroupHeartbeat and ConsumerGroupDescribe."""

    __slots__ = ()

    def handlers(self) -> Handlers:
        """Of both."""
        return {
            ApiKey.CONSUMER_GROUP_HEARTBEAT: self._heartbeat,
            ApiKey.CONSUMER_GROUP_DESCRIBE: self._describe,
        }

    def _heartbeat(
        self, _call: Call[ConsumerGroupHeartbeatRequest]
    ) -> ConsumerGroupHeartbeatResponse:
        """An error without a message; of what was asked for nothing is repeated."""
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)

    def _describe(self, call: Call[ConsumerGroupDescribeRequest]) -> ConsumerGroupDescribeResponse:
        """An error without a message for each group, in the order of the request."""
        error = ErrorCode.UNSUPPORTED_VERSION
        return ConsumerGroupDescribeResponse(
            groups=tuple(
                DescribedGroup(error_code=error, group_id=each) for each in call.request.group_ids
            )
        )
