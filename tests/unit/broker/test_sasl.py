"""SASL at a connection: who gets in, what the others are told, and when."""

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.security.plain import PlainUsers, jaas_users
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame

MECHANISMS = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"}


class SaslClient:
    """A client of a listener with SASL.

    Attributes:
        frames: What it was sent, without lengths.
        closed: Why the connection was ended; None while it is open.
    """

    def __init__(self, listener: str = "SASL_PLAINTEXT", **given: str) -> None:
        settings = ClusterSettings(
            given=MECHANISMS | {name.replace("_", "."): value for name, value in given.items()},
            users=PlainUsers({"alice": "secret", "bob": "hidden"}),
        )
        self.cluster = Cluster(settings, endpoint=lambda _id, _name: Endpoint("h", 1))
        self.frames: list[bytes] = []
        self.closed: str | None = None
        self.at_ms = 1_000_000
        self.connection = Connection(
            self.cluster, 1, number=1, listener=listener, client_host="/127.0.0.1", output=self
        )

    def write(self, data: bytes) -> None:
        """Take an answer."""
        self.frames.append(data[4:])

    def close(self, reason: str) -> None:
        """Hear of the end."""
        self.closed = reason

    def send(self, api: ApiKey, version: int, fields: Fields) -> None:
        """Send a request."""
        header = RequestHeader(api_key=int(api), api_version=version, correlation_id=1)
        self.send_raw(request_frame(header, fields))

    def send_raw(self, frame: bytes) -> None:
        """Send bytes."""
        self.connection.received(frame, Instants(self.at_ms, self.at_ms))

    def call(self, api: ApiKey, version: int, fields: Fields) -> Fields:
        """Send a request that is answered; its answer."""
        self.send(api, version, fields)
        return read_response_frame(api, version, self.frames.pop())[1]

    def shake_hands(self, mechanism: str = "PLAIN", version: int = 1) -> Fields:
        """SaslHandshake."""
        return self.call(ApiKey.SASL_HANDSHAKE, version, {"mechanism": mechanism})

    def log_in(self, user: str = "alice", password: str = "secret") -> Fields:  # noqa: S107 - of a test
        """SaslAuthenticate by PLAIN, behind a handshake."""
        self.shake_hands()
        token = f"\0{user}\0{password}".encode()
        return self.call(ApiKey.SASL_AUTHENTICATE, 2, {"authBytes": token})

    def wait(self, wall_ms: int) -> None:
        """Let time pass on both clocks."""
        self.at_ms += wall_ms
        self.cluster.expire(Instants(self.at_ms, self.at_ms))


def metadata(client: SaslClient) -> Fields:
    """Metadata of no topic."""
    return client.call(ApiKey.METADATA, 9, {"topics": []})


def test_right_password_opens_the_connection() -> None:
    """Behind it requests are answered, in the user's name."""
    client = SaslClient()
    client.call(ApiKey.API_VERSIONS, 3, {"clientSoftwareName": "x", "clientSoftwareVersion": "1"})

    assert client.shake_hands()["mechanisms"] == ["PLAIN", "SCRAM-SHA-256"]
    token = {"authBytes": b"\0alice\0secret"}
    assert client.call(ApiKey.SASL_AUTHENTICATE, 2, token)["errorCode"] == 0
    assert client.connection.principal == "User:alice"
    assert metadata(client)["brokers"]


def test_wrong_password_is_told_late_and_ends_the_connection() -> None:
    """For 100 ms nothing is said, against guessing; then the error and the end."""
    client = SaslClient()
    client.shake_hands()
    client.send(ApiKey.SASL_AUTHENTICATE, 2, {"authBytes": b"\0alice\0wrong"})
    client.wait(99)
    assert (client.frames, client.closed) == ([], None)

    client.wait(1)

    _, answer = read_response_frame(ApiKey.SASL_AUTHENTICATE, 2, client.frames[0])
    assert answer["errorCode"] == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer["errorMessage"] == "Authentication failed: Invalid username or password"
    assert client.closed is not None
    assert "wrong" not in client.closed


def test_mechanism_that_is_not_enabled_is_answered_with_those_that_are() -> None:
    """The client learns what it could use, and is let go."""
    client = SaslClient()
    client.send(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "GSSAPI"})
    client.wait(100)

    _, answer = read_response_frame(ApiKey.SASL_HANDSHAKE, 1, client.frames[0])
    assert answer["errorCode"] == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer["mechanisms"] == ["PLAIN", "SCRAM-SHA-256"]
    assert client.closed is not None


def test_request_before_authentication_ends_the_connection() -> None:
    """Only ApiVersions and SaslHandshake may come before."""
    client = SaslClient()
    client.send(ApiKey.METADATA, 9, {"topics": []})
    client.wait(100)

    assert client.frames == []
    assert client.closed is not None


def test_request_instead_of_a_token_is_an_illegal_state() -> None:
    """Behind a handshake anything but SaslAuthenticate is answered so, and is the last."""
    client = SaslClient()
    client.shake_hands()
    client.send(ApiKey.FIND_COORDINATOR, 3, {"key": "g", "keyType": 0})
    client.wait(100)

    _, answer = read_response_frame(ApiKey.FIND_COORDINATOR, 3, client.frames[0])
    assert answer["errorCode"] == ErrorCode.ILLEGAL_SASL_STATE
    assert client.closed is not None


def test_old_client_sends_tokens_as_they_are() -> None:
    """Behind SaslHandshake 0 there is no SaslAuthenticate around a token."""
    client = SaslClient()
    client.shake_hands(version=0)
    client.send_raw(b"\0alice\0secret")

    assert client.frames == [b""]
    assert client.connection.principal == "User:alice"


def test_sasl_is_refused_where_it_is_over_or_never_was() -> None:
    """Both APIs answer an illegal state on a listener without SASL and behind a login."""
    client = SaslClient("PLAINTEXT")
    illegal = ErrorCode.ILLEGAL_SASL_STATE
    token = {"authBytes": b""}

    assert client.shake_hands()["errorCode"] == illegal
    assert client.call(ApiKey.SASL_AUTHENTICATE, 2, token)["errorCode"] == illegal
    behind = SaslClient()
    behind.log_in()
    assert behind.shake_hands()["errorCode"] == illegal


def session_client() -> SaslClient:
    """A client whose sessions last an hour."""
    return SaslClient(connections_max_reauth_ms="3600000")


def test_session_is_prolonged_by_authenticating_again() -> None:
    """The client is told how long it has, and goes on behind another exchange."""
    client = session_client()
    assert client.log_in()["sessionLifetimeMs"] == 3_600_000
    client.wait(3_000_000)
    assert client.log_in()["errorCode"] == 0

    client.wait(3_000_000)

    assert metadata(client)["brokers"]


def test_session_that_is_over_ends_the_connection() -> None:
    """Whoever does not authenticate again is cut off at its next request."""
    client = session_client()
    client.log_in()
    client.wait(3_600_001)
    client.send(ApiKey.METADATA, 9, {"topics": []})

    assert client.closed is not None


def test_nobody_becomes_somebody_else() -> None:
    """Who authenticates again stays who it was."""
    client = session_client()
    client.log_in()
    client.wait(2_000)
    client.shake_hands()
    client.send(ApiKey.SASL_AUTHENTICATE, 2, {"authBytes": b"\0bob\0hidden"})
    client.wait(100)

    _, answer = read_response_frame(ApiKey.SASL_AUTHENTICATE, 2, client.frames[0])
    assert answer["errorMessage"] == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert client.closed is not None


def test_users_come_from_a_login_module_too() -> None:
    """Names and passwords as Kafka's PlainLoginModule has them; nothing shows a password."""
    text = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="admin" password="x" user_admin="x" user_carol="s;p a\\"ce";'
    )

    assert jaas_users(text) == {"admin": "x", "carol": 's;p a"ce'}
    assert "x" not in repr(PlainUsers({"admin": "x"}))


def test_a_listener_that_nobody_can_use_is_known() -> None:
    """A password from anywhere opens it: of the command line, or of the listener's own settings."""
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_carol="x";'
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    for given, users, is_open in (
        ({}, {}, False),
        ({}, {"alice": "secret"}, True),
        ({name: jaas}, {}, True),
    ):
        settings = ClusterSettings(given=MECHANISMS | given, users=PlainUsers(users))
        cluster = Cluster(settings, endpoint=lambda _id, _name: Endpoint("h", 1))
        assert cluster.security.knows_users("SASL_PLAINTEXT") is is_open
