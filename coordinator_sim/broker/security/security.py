"""Authentication on each listener, and authorization of its clients.

Source: kafka trunk, clients/.../network/ChannelBuilders.java (settings of listeners and
mechanisms), security/auth/SecurityProtocol.java; metadata/.../authorizer/StandardAuthorizer.java
(configure).
"""

from collections.abc import Callable
from enum import Enum, unique
from typing import Final

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.configs.setting_types import text_of
from coordinator_sim.broker.metadata.changes import Change, ScramSet
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.security.image_authorizer import ImageAuthorizer
from coordinator_sim.broker.security.plain import PlainServer, PlainUsers, jaas_users
from coordinator_sim.broker.security.sasl import Authentication, Exchange, SaslSettings
from coordinator_sim.broker.security.scram import SCRAM_MECHANISMS, ScramServer, verifier_of
from coordinator_sim.broker.versions_api import VersionsApi
from coordinator_sim.errors import ConfigError

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *SCRAM_MECHANISMS)
"""The supported SASL mechanisms."""
_NONCE_BYTES: Final = 18
_SALT_BYTES: Final = 20


@unique
class SecurityProtocol(Enum):
    """Security protocol of a listener."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def uses_tls(self) -> bool:
        """Whether connections use TLS."""
        return self in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def uses_sasl(self) -> bool:
        """Whether clients authenticate by SASL."""
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}


class Security:
    """Security of a cluster's listeners.

    Args:
        configs: Settings of the cluster.
        image: The metadata, with SCRAM credentials and ACL rules.
        users: Users that may log in with a password on any listener with SASL.
        draw_bytes: Draws the given number of bytes, for nonces and salts.
    """

    def __init__(
        self,
        configs: Configs,
        image: MetadataImage,
        users: PlainUsers,
        draw_bytes: Callable[[int], bytes],
    ) -> None:
        self._configs = configs
        self._image = image
        self._users = users
        self._draw_bytes = draw_bytes

    def protocol_of(self, listener: str) -> SecurityProtocol:
        """The security protocol of a listener.

        Raises:
            ConfigError: `listener.security.protocol.map` does not name it.
        """
        named = text_of(self._configs.broker_value("listener.security.protocol.map")) or ""
        for entry in named.split(","):
            name, _, protocol = entry.strip().partition(":")
            if name == listener and protocol in SecurityProtocol.__members__:
                return SecurityProtocol(protocol)
        raise ConfigError(
            f"listener {listener!r} has no security protocol: name it in "
            "listener.security.protocol.map"
        )

    def authentication(self, listener: str, versions: VersionsApi) -> Authentication | None:
        """SASL state for a new connection; None if the listener has no SASL."""
        if not self.protocol_of(listener).uses_sasl:
            return None
        users = self._users_of(listener)

        def begin(mechanism: str) -> Exchange:
            if mechanism == PLAIN:
                return PlainServer(users)
            scram = SCRAM_MECHANISMS[mechanism]
            nonce = self._draw_bytes(_NONCE_BYTES).hex()
            return ScramServer(scram, lambda user: self._verifier(user, scram.number), nonce)

        return Authentication(self.sasl_of(listener), begin, versions)

    def sasl_of(self, listener: str) -> SaslSettings:
        """The SASL settings of a listener.

        Raises:
            ConfigError: a mechanism is not supported.
        """
        configs = self._configs
        enabled = configs.listener_value(listener, "sasl.enabled.mechanisms")
        mechanisms = tuple(enabled) if isinstance(enabled, list) else ()
        for mechanism in mechanisms:
            if mechanism not in MECHANISMS:
                known = ", ".join(MECHANISMS)
                raise ConfigError(f"SASL mechanism {mechanism!r}: use one of {known}")
        lifetimes = {
            mechanism: _number(
                configs.listener_value(listener, "connections.max.reauth.ms", mechanism)
            )
            for mechanism in mechanisms
        }
        size = _number(configs.listener_value(listener, "sasl.server.max.receive.size"))
        delay = configs.broker_value("connection.failed.authentication.delay.ms")
        return SaslSettings(
            mechanisms=mechanisms,
            max_reauth_ms=lifetimes,
            max_receive_bytes=size or SaslSettings(mechanisms=()).max_receive_bytes,
            failure_delay_ms=_number(delay),
        )

    def knows_users(self, listener: str) -> bool:
        """Whether any user could log in on a listener with SASL."""
        return bool(self._image.scram) or bool(self._users_of(listener))

    def authorizer(self) -> ImageAuthorizer | None:
        """The authorizer; None when `authorizer.class.name` is empty."""
        if not self._configs.broker_value("authorizer.class.name"):
            return None
        supers = str(self._configs.given.get("super.users", "")).split(";")
        found = self._configs.given.get("allow.everyone.if.no.acl.found", "false")
        return ImageAuthorizer(
            self._image,
            super_users=[each.strip() for each in supers if each.strip()],
            allow_if_no_acl=found.strip().lower() == "true",
        )

    def admit_users(self, change: Callable[[Change], None]) -> None:
        """Give the users with a password SCRAM credentials, too."""
        for user, password in self._users.items():
            for mechanism in SCRAM_MECHANISMS.values():
                known = self._image.scram.get((user, mechanism.number))
                salt = known.salt if known else self._draw_bytes(_SALT_BYTES)
                wanted = verifier_of(mechanism, user, password, salt=salt)
                if known != wanted:
                    change(wanted)

    def _users_of(self, listener: str) -> PlainUsers:
        jaas = self._configs.listener_value(listener, "sasl.jaas.config", PLAIN)
        named = jaas_users(jaas) if isinstance(jaas, str) else {}
        return PlainUsers(dict(self._users.items()) | named) if named else self._users

    def _verifier(self, user: str, mechanism: int) -> ScramSet | None:
        return self._image.scram.get((user, mechanism))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
