"""The APIs of share coordinators, which brokers send each other.

Source: kafka 4.3, KafkaApis.scala: handleInitializeShareGroupStateRequest and its four siblings.
"""

from collections.abc import Callable

from coordinator_sim.broker.contract import Call, Handlers, Instants
from coordinator_sim.broker.jobs import Jobs
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.broker.share_coordinator.operations import (
    StateRequest,
    StateResponse,
    failed_everywhere,
)
from coordinator_sim.broker.share_coordinator.service import ShareCoordinator
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.steps import Steps

FindCoordinator = Callable[[int, Instants], ShareCoordinator]
"""Finds the current coordinator of a broker by its id."""

STATE_APIS = (
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
)


class ShareStateApis:
    """Answers the five APIs; whether share groups are on is not asked.

    Args:
        access: Authorizes requests.
        coordinator: See `FindCoordinator`.
        jobs: Runs long work in steps, and takes late answers.
    """

    __slots__ = ("_access", "_coordinator", "_jobs")

    def __init__(self, access: Access, coordinator: FindCoordinator, jobs: Jobs) -> None:
        self._access = access
        self._coordinator = coordinator
        self._jobs = jobs

    def handlers(self) -> Handlers:
        """The handler of each API."""
        return dict.fromkeys(STATE_APIS, self._jobs.handler(self._steps))

    def _steps(self, call: Call[StateRequest]) -> Steps[StateResponse | None]:
        operation, cluster = Operation.CLUSTER_ACTION, ResourceType.CLUSTER
        if not self._access.allows(call.context, operation, cluster, CLUSTER_NAME):
            # Source: toGlobalErrorResponse of each response class.
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return failed_everywhere(call.request, error, error_message(error))
        token = call.context.token

        def answer(response: StateResponse) -> None:
            self._jobs.answers.answer(token, response)

        coordinator = self._coordinator(call.broker_id, call.now)
        yield from coordinator.handle(call.request, answer, call.now.group_ms)
        return None
