"""SaslHandshake and SaslAuthenticate where no authentication is under way.

Source: kafka trunk, KafkaApis.handleSaslHandshakeRequest, handleSaslAuthenticateRequest.
"""

from coordinator_sim.mini_broker.contract import Call, Handlers
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.wire.schema import Data


class SaslApi:
    """Refuses both: they come too late, or on a listener without SASL."""

    __slots__ = ()

    def handlers(self) -> Handlers:
        """Of the two APIs."""
        return {
            ApiKey.SASL_HANDSHAKE: self._handshake,
            ApiKey.SASL_AUTHENTICATE: self._authenticate,
        }

    def _handshake(self, _call: Call) -> Data:
        return {"errorCode": int(ErrorCode.ILLEGAL_SASL_STATE), "mechanisms": []}

    def _authenticate(self, _call: Call) -> Data:
        text = "SaslAuthenticate request received after successful authentication"
        return {
            "errorCode": int(ErrorCode.ILLEGAL_SASL_STATE),
            "errorMessage": text,
            "authBytes": b"",
        }
