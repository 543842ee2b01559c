"""Server side of SASL on a connection: authentication and re-authentication.

Source: kafka trunk, clients/.../security/authenticator/SaslServerAuthenticator.java;
KafkaChannel.java (delayed close, re-authentication); SocketServer.scala (expired sessions).
"""

import struct
from collections.abc import Callable
from enum import Enum, unique
from typing import Any, Final, Protocol, cast

from msgspec import Struct

from coordinator_sim.broker.contract import Call, Handlers, Instants
from coordinator_sim.broker.error_answers import error_answer
from coordinator_sim.broker.versions_api import VersionsApi
from coordinator_sim.errors import DataError, UnsupportedVersion, WireFormatError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from coordinator_sim.messages.codec.compiler import request_reader, response_writer
from coordinator_sim.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from coordinator_sim.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


class SaslApi:
    """Refuses both APIs: they come too late, or on a listener without SASL."""

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


class SaslStep(Struct, frozen=True):
    """One step of a SASL exchange.

    Args:
        token: Token to send to the client.
        user: The authenticated user when the exchange is over; None while it goes on.
        is_refused: Whether the exchange failed.
        reason: Failure message for the client; None for the generic one.
    """

    token: bytes = b""
    user: str | None = None
    is_refused: bool = False
    reason: str | None = None


def refused(reason: str | None = None) -> SaslStep:
    """A step that fails the exchange."""
    return SaslStep(is_refused=True, reason=reason)


ANONYMOUS: Final = "User:ANONYMOUS"
_START: Final = struct.Struct(">hhi")
_APIS: Final = {int(api): api for api in ApiKey}
_HEADERS_SINCE: Final = 1
"""From this version of SaslHandshake on, tokens come inside SaslAuthenticate."""
_MIN_INTERVAL_MS: Final = 1_000
"""Shortest interval of re-authentication; see KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS."""


class Exchange(Protocol):
    """Server side of one exchange of a SASL mechanism."""

    def take(self, token: bytes) -> SaslStep:
        """Take a token of the client; return the next step."""
        ...


class SaslSettings(Struct, frozen=True, kw_only=True):
    """SASL settings of one listener.

    Args:
        mechanisms: `sasl.enabled.mechanisms`, in the order shown to clients.
        max_reauth_ms: `connections.max.reauth.ms` of each mechanism; 0 for unlimited sessions.
        max_receive_bytes: `sasl.server.max.receive.size`.
        failure_delay_ms: `connection.failed.authentication.delay.ms`.
    """

    mechanisms: tuple[str, ...]
    max_reauth_ms: dict[str, int] = {}
    max_receive_bytes: int = 524_288
    failure_delay_ms: int = 100


class SaslOutcome(Struct, frozen=True):
    """Result of a client's frame.

    Args:
        frame: Frame to send, without its length; None for none.
        failure: Why the connection closes afterwards, for the log, without secrets; None to go on.
        delay_ms: Wall milliseconds before a failure is answered.
    """

    frame: bytes | None = None
    failure: str | None = None
    delay_ms: int = 0


class _Header(Struct, frozen=True):
    """Header of a request."""

    api: ApiKey
    version: int
    correlation_id: int

    def request(self, frame: bytes) -> Any:  # noqa: ANN401 - a request of any API
        """Read the request from the whole frame.

        Raises:
            UnsupportedVersion: no such API or version.
            WireFormatError: the bytes do not parse.
        """
        return request_reader(self.api, self.version)(frame)[1]

    def answered(self, answer: Struct) -> bytes:
        """The frame of the request's answer."""
        return response_writer(self.api, self.version)(self.correlation_id, answer)


@unique
class _State(Enum):
    """State of an exchange. Source: SaslServerAuthenticator.SaslState."""

    HANDSHAKE_OR_VERSIONS = "handshake or versions"
    HANDSHAKE = "handshake"
    AUTHENTICATE = "authenticate"
    BAD_MECHANISM = "bad mechanism"
    COMPLETE = "complete"


class Authentication:
    """Authentication of one connection's client.

    Args:
        settings: SASL settings of the listener.
        begin: Starts an exchange of an enabled mechanism.
        versions: The offered versions, and the answer to ApiVersions.

    Attributes:
        principal: Principal of the client, for example `User:alice`; anonymous until known.
    """

    def __init__(
        self,
        settings: SaslSettings,
        begin: Callable[[str], Exchange],
        versions: VersionsApi,
    ) -> None:
        self._settings = settings
        self._begin = begin
        self._versions = versions
        self._state = _State.HANDSHAKE_OR_VERSIONS
        self._exchange: Exchange | None = None
        self._mechanism = ""
        self._has_headers = False
        self._again = False
        self._began_ms: int | None = None
        self._expires_ms: int | None = None
        self.principal = ANONYMOUS

    @property
    def max_receive_bytes(self) -> int:
        """`sasl.server.max.receive.size`."""
        return self._settings.max_receive_bytes

    @property
    def is_complete(self) -> bool:
        """Whether the client is authenticated and may send requests."""
        return self._state is _State.COMPLETE

    def takes(self, frame: bytes, now: Instants) -> bool:
        """Whether a frame is for `take`: during authentication, and to start re-authentication."""
        if not self.is_complete:
            return True
        if frame[:2] != _HANDSHAKE or self._expires_ms is None:
            return False
        if self._began_ms is not None and now.wall_ms - self._began_ms < _MIN_INTERVAL_MS:
            return False
        self._began_ms = now.wall_ms
        self._again = True
        self._state = _State.HANDSHAKE
        return True

    def has_expired(self, now: Instants) -> bool:
        """Whether the session has expired because the client did not re-authenticate in time."""
        expires_ms = self._expires_ms
        return expires_ms is not None and now.wall_ms > expires_ms and self.is_complete

    def take(self, frame: bytes, now: Instants) -> SaslOutcome:
        """Take a frame of a client that is authenticating."""
        if len(frame) > self._settings.max_receive_bytes:
            return self._failed(f"a SASL token of {len(frame)} bytes")
        if self._state is _State.BAD_MECHANISM:
            return self._failed("another SASL mechanism than before")
        if self._state is _State.AUTHENTICATE and not self._has_headers:
            return self._raw_token(frame, now)
        try:
            return self._request(frame, now)
        except (WireFormatError, UnsupportedVersion, DataError) as error:
            return SaslOutcome(failure=f"no request of SASL: {error}")

    # -- the handshake ---------------------------------------------------------------------

    def _request(self, frame: bytes, now: Instants) -> SaslOutcome:
        if len(frame) < _START.size:
            return self._failed(f"a SASL request of {len(frame)} bytes")
        api_key, version, correlation_id = _START.unpack_from(frame)
        api = _APIS.get(api_key)
        if api is None:
            return self._failed(f"a request of API {api_key} instead of SASL")
        header = _Header(api, version, correlation_id)
        if self._state is _State.AUTHENTICATE:
            return self._token_request(frame, header, now)
        if api is ApiKey.API_VERSIONS:
            return self._versions_request(frame, header, now)
        low, high = self._versions.ranges.get(api, (0, -1))
        if api is ApiKey.SASL_HANDSHAKE and low <= version <= high:
            return self._handshake(frame, header)
        return self._failed(f"a {api.name} of version {version} during the SASL handshake")

    def _versions_request(self, frame: bytes, header: _Header, now: Instants) -> SaslOutcome:
        """Answer ApiVersions, which may come once before the handshake."""
        if self._state is not _State.HANDSHAKE_OR_VERSIONS:
            return SaslOutcome(failure="ApiVersions twice during the SASL handshake")
        low, high = self._versions.ranges[ApiKey.API_VERSIONS]
        if low <= header.version <= high:
            return self._tell_versions(frame, header, now)
        oldest = _Header(ApiKey.API_VERSIONS, 0, header.correlation_id)
        return SaslOutcome(oldest.answered(self._versions.unsupported()))

    def _tell_versions(self, frame: bytes, header: _Header, now: Instants) -> SaslOutcome:
        request: ApiVersionsRequest = header.request(frame)
        context = RequestContext(token=0, api_version=header.version)
        call = Call(broker_id=0, api=ApiKey.API_VERSIONS, request=request, context=context, now=now)
        answer = self._versions.handlers()[ApiKey.API_VERSIONS](call)
        versions = cast("ApiVersionsResponse", answer)
        if versions.error_code is ErrorCode.NONE:
            self._state = _State.HANDSHAKE
        return SaslOutcome(header.answered(versions))

    def _handshake(self, frame: bytes, header: _Header) -> SaslOutcome:
        request: SaslHandshakeRequest = header.request(frame)
        mechanism = request.mechanism
        if header.version >= _HEADERS_SINCE:
            self._has_headers = True
        enabled = self._settings.mechanisms
        if mechanism not in enabled:
            refusal = SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, enabled)
            text = "a SASL mechanism that is not enabled"
            return self._failed(text, header.answered(refusal))
        answer = header.answered(SaslHandshakeResponse(ErrorCode.NONE, enabled))
        if self._again and mechanism != self._mechanism:
            self._state = _State.BAD_MECHANISM
            return SaslOutcome(answer)
        self._mechanism = mechanism
        self._exchange = self._begin(mechanism)
        self._state = _State.AUTHENTICATE
        return SaslOutcome(answer)

    # -- tokens ----------------------------------------------------------------------------

    def _raw_token(self, token: bytes, now: Instants) -> SaslOutcome:
        """Take a bare token, as clients send without SaslAuthenticate."""
        step = self._step(token)
        if step.is_refused:
            return self._failed(self._failure_text(step))
        self._lifetime_ms(step, now)
        return SaslOutcome(step.token)

    def _token_request(self, frame: bytes, header: _Header, now: Instants) -> SaslOutcome:
        api, version = header.api, header.version
        if api is not ApiKey.SASL_AUTHENTICATE:
            refusal = error_answer(
                api, version, header.request(frame), ErrorCode.ILLEGAL_SASL_STATE
            )
            text = f"a {api.name} during SASL authentication"
            return self._failed(text, header.answered(refusal))
        low, high = self._versions.ranges.get(api, (0, -1))
        if not low <= version <= high:
            return SaslOutcome(failure=f"a SaslAuthenticate of version {version}")
        request: SaslAuthenticateRequest = header.request(frame)
        step = self._step(request.auth_bytes)
        if step.is_refused:
            text = self._failure_text(step)
            failed = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, text)
            return self._failed(text, header.answered(failed))
        answer = SaslAuthenticateResponse(
            error_code=ErrorCode.NONE,
            error_message=None,
            auth_bytes=step.token,
            session_lifetime_ms=self._lifetime_ms(step, now),
        )
        return SaslOutcome(header.answered(answer))

    def _step(self, token: bytes) -> SaslStep:
        """Do one step of the exchange; re-authentication must not change the principal."""
        step = refused() if self._exchange is None else self._exchange.take(token)
        if step.user is None:
            return step
        principal = f"User:{step.user}"
        if self._again and principal != self.principal:
            before, after = (each.replace(":", ".", 1) for each in (self.principal, principal))
            text = f"Cannot change principals during re-authentication from {before}: {after}"
            return refused(text)
        self.principal = principal
        self._state = _State.COMPLETE
        self._exchange = None
        return step

    def _lifetime_ms(self, step: SaslStep, now: Instants) -> int:
        """Lifetime of the session; 0 before it has begun, and if it is unlimited."""
        lifetime_ms = self._settings.max_reauth_ms.get(self._mechanism, 0)
        if step.user is None or lifetime_ms <= 0:
            return 0
        self._expires_ms = now.wall_ms + lifetime_ms
        return lifetime_ms

    def _failure_text(self, step: SaslStep) -> str:
        """Failure message for the client; it does not tell a wrong name from a wrong password."""
        if step.reason is not None:
            return step.reason
        what = "re-authentication" if self._again else "authentication"
        return (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )

    def _failed(self, failure: str, frame: bytes | None = None) -> SaslOutcome:
        return SaslOutcome(frame, failure, self._settings.failure_delay_ms)


_HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE).to_bytes(2, "big")
