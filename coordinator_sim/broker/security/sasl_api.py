"""SaslHandshake and SaslAuthenticate outside of an authentication.

Source: kafka trunk, KafkaApis.handleSaslHandshakeRequest, handleSaslAuthenticateRequest.
"""

from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from coordinator_sim.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


class SaslApi:
    """Refuses both APIs: they come too late, or on a listener without SASL."""

    __slots__ = ()

    def handlers(self) -> Handlers:
        """Handlers of SaslHandshake and SaslAuthenticate."""
        return {
            ApiKey.SASL_HANDSHAKE: self._handshake,
            ApiKey.SASL_AUTHENTICATE: self._authenticate,
        }

    def _handshake(self, _call: Call[SaslHandshakeRequest]) -> SaslHandshakeResponse:
        return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)

    def _authenticate(self, _call: Call[SaslAuthenticateRequest]) -> SaslAuthenticateResponse:
        text = "SaslAuthenticate request received after successful authentication"
        return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, text)
