"""A request with its reply as the proxy saw them pass, and what is flagged.

Replies of several connections come in another order than the coordinator gave them. Only this is
certain: what was replied before another request was sent came before it.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from coordinator_sim_conformance.proxy.rules import Rule
from coordinator_sim_conformance.wire.kio_bodies import Json

NEVER: Final = -1
"""Place of what has not happened."""


class Exchange(Struct, kw_only=True):
    """A request and its reply.

    Args:
        connection: Number of the client's connection.
        api: Kafka's name of the API.
        request: Body of the request.
        sent: Place of the request among all that passed, growing.
        client_id: As the client calls itself.
        request_frame: The request without its length.
        reply: Body of the reply; empty until it came.
        replied: Place of the reply; `NEVER` until it came.
        reply_frame: The reply without its length.
    """

    connection: int
    api: str
    version: int
    request: Json
    sent: int
    client_id: str = ""
    request_frame: bytes = b""
    reply: Json = {}
    replied: int = NEVER
    reply_frame: bytes = b""

    @property
    def group_id(self) -> str:
        """Group that it is about; empty where it is about several or none."""
        groups = self.request.get("groups") or []
        named = groups[0] if len(groups) == 1 and isinstance(groups[0], dict) else self.request
        found: str = named.get("groupId") or ""
        return found

    @property
    def generation(self) -> int:
        """Generation of the request; -1 where it has none."""
        for name in ("generationId", "generationIdOrMemberEpoch"):
            if name in self.request:
                found: int = self.request[name]
                return found
        return -1

    @property
    def member_id(self) -> str:
        """Member that sent the request; empty where it says none."""
        found: str = self.request.get("memberId") or ""
        return found

    @property
    def instance_id(self) -> str | None:
        """Instance id of the request; None for a dynamic member."""
        found: str | None = self.request.get("groupInstanceId")
        return found

    @property
    def error(self) -> int:
        """Error code of the whole reply; 0 where errors are told by partition alone."""
        code: int = self.reply.get("errorCode", 0)
        return code


class Flag(Struct, frozen=True, kw_only=True):
    """A reply which no correct coordinator could give.

    Args:
        said: What is wrong with it, in one line.
        exchange: The reply and its request.
        evidence: Earlier exchanges that it contradicts.
    """

    rule: Rule
    group_id: str
    said: str
    exchange: Exchange
    evidence: tuple[Exchange, ...] = ()


def flag(rule: Rule, exchange: Exchange, said: str, evidence: Iterable[Exchange] = ()) -> Flag:
    """Return the flag of an exchange about one group."""
    return Flag(
        rule=rule,
        group_id=exchange.group_id,
        said=said,
        exchange=exchange,
        evidence=tuple(evidence),
    )
