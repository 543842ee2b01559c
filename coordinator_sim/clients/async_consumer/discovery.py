"""The group's coordinator: found on the network thread, and looked for again when it is lost.

Source: kafka 4.4, clients/.../consumer/internals/CoordinatorRequestManager.java.
"""

from typing import Unpack

from coordinator_sim.clients.async_consumer.request_states import RequestState
from coordinator_sim.clients.background_port import BackgroundPort
from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.client_traits import JAVA_ASYNC
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import Effects
from coordinator_sim.clients.exceptions import (
    DISCONNECT,
    ILLEGAL_STATE,
    RETRIABLE,
    exception_name,
)
from coordinator_sim.clients.network import FOREVER, RequestKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)


class AsyncDiscovery(BackgroundPort):
    """Knows the coordinator, or looks for it."""

    __slots__ = ("_fatal_lookup_error", "_lookup_state", "_stops_lookups")

    def __init__(self, config: ConsumerConfig, **setup: Unpack[ConsumerSetup]) -> None:
        super().__init__(config, JAVA_ASYNC, **setup)
        self._lookup_state = self._request_state("lookup-backoff")
        self._fatal_lookup_error: str | None = None
        self._stops_lookups = False

    def on_unexpected_response(self, node_id: int, now_ms: int) -> Effects:
        """Lose the oldest request of the connection; the network thread logs, and goes on.

        Source: kafka 4.4, NetworkClient.handleCompletedReceives, ConsumerNetworkThread.run.
        """
        self._net.lose_next(node_id)
        return self._settle(now_ms)

    def _request_state(self, site: str) -> RequestState:
        return RequestState(self._config, self._jitter, site=site, key=self._client_id)

    def _poll_coordinator(self, now_ms: int) -> int:
        """Look the coordinator up if it is unknown; return how long there is nothing to do.

        DEVIATION: the broker that is asked is chosen once; Java chooses another while the first
        one cannot be reached.

        Source: CoordinatorRequestManager.poll.
        """
        if self._stops_lookups or self._coordinator_id is not None:
            return FOREVER
        state = self._lookup_state
        if not state.may_send(now_ms):
            return FOREVER if state.is_in_flight else state.backoff_left_ms(now_ms)
        node_id = self._net.least_loaded(self._metadata.nodes, now_ms)
        if node_id is None:
            return max(self._net.next_retry_at_ms() - now_ms, 1)
        state.sent()
        request = FindCoordinatorRequest(coordinator_keys=(self._group_id,))
        self._request(RequestKind.LOOKUP, node_id, request, now_ms)
        return FOREVER

    def _on_find_coordinator(self, response: FindCoordinatorResponse, now_ms: int) -> None:
        """Adopt the coordinator. Source: CoordinatorRequestManager.onResponse."""
        answer = next((each for each in response.coordinators if each.key == self._group_id), None)
        if answer is None:
            self._lookup_failed(ILLEGAL_STATE, now_ms)
        elif answer.error_code is not ErrorCode.NONE:
            self._lookup_failed(exception_name(answer.error_code), now_ms)
        else:
            self._fatal_lookup_error = None
            self._coordinator_id = answer.node_id
            self._lookup_state.succeeded(now_ms)

    def _lookup_failed(self, error: str, now_ms: int) -> None:
        """Look again after the backoff; what cannot be retried is told to the application.

        Source: CoordinatorRequestManager.onFailedResponse.
        """
        self._lookup_state.failed(now_ms)
        self._coordinator_id = None
        self._fatal_lookup_error = None if error in RETRIABLE else error

    def _lost_contact(self, error: str) -> None:
        """Forget the coordinator after a broken connection, and after nothing else.

        Source: CoordinatorRequestManager.handleCoordinatorDisconnect.
        """
        if error == DISCONNECT:
            self._coordinator_id = None
