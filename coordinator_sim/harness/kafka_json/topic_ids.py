"""The ids of topics in commands: as they are given, or made from the names."""

from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any, Final

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.partitioning import java_string_hash

_PREFIX: Final = 0x544F504943
"""First half of the ids that are made."""


def topic_id_of(topic: dict[str, Any], name: str) -> bytes:
    """Return the id that a command gives a topic, or one made from its name.

    Raises:
        ConfigError: the id that is given is none.
    """
    if "id" not in topic:
        low = (java_string_hash(name) & 0xFFFFFFFF) + 1
        return (_PREFIX << 64 | low).to_bytes(16, "big")
    try:
        return b64decode(f"{topic['id']}==", b"-_", validate=True)
    except Base64Error as error:
        raise ConfigError(f"id: {topic['id']!r} is no topic id: {error}") from None
