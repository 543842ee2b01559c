"""A frame of Kafka's protocol as it was sent or received: evidence of how a case ended."""

from typing import Literal

from msgspec import Struct


class Frame(Struct, frozen=True, kw_only=True):
    """One request or response on the wire.

    Args:
        direction: `sent` to the target, or `received` from it.
        api: Kafka's name of the API, such as `JoinGroup`.
        version: Version of the API.
        at_ms: Milliseconds since the case began.
        hex: The bytes after the length, two hexadecimal digits a byte.
    """

    direction: Literal["sent", "received"]
    api: str
    version: int
    at_ms: int
    hex: str
