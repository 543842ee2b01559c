"""The sender of a request, and the constants for an absent member or generation."""

from typing import Final

from msgspec import Struct

UNKNOWN_MEMBER_ID: Final = ""
"""The member id of a client that has none yet."""
NO_GENERATION_ID: Final = -1
"""The generation of a client outside any generation, and of every JoinGroup error."""


class RequestContext(Struct, frozen=True, kw_only=True, gc=False):
    """The sender of a request, with the facts that the broker's network layer has.

    Args:
        token: Names the reply; unique among the requests a coordinator has not answered.
        api_version: Version the request was sent in; decides version-dependent behaviour.
        client_host: As Java prints an address, with a leading slash.
    """

    token: int
    api_version: int
    client_id: str = ""
    client_host: str = "/127.0.0.1"
    principal: str = "User:ANONYMOUS"
    listener: str = "PLAINTEXT"
