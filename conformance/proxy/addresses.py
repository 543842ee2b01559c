"""Addresses of brokers in replies, replaced by those of the proxy.

Nothing is judged here, so that the codec is this project's own, which is quick.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from coordinator_sim.errors import UnsupportedVersion, WireFormatError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.compiler import response_reader, response_writer

Address = tuple[str, int]
"""Host and port."""

_ENTRIES: Final = {
    ApiKey.METADATA: "brokers",
    ApiKey.FIND_COORDINATOR: "coordinators",
    ApiKey.DESCRIBE_CLUSTER: "brokers",
}
"""API -> its entries with a host and a port."""
REPLACED: Final = frozenset(map(int, _ENTRIES))
"""Numbers of the APIs whose replies have addresses."""


def with_addresses(
    api: int, version: int, frame: bytes, stand_in: Callable[[Address], Address]
) -> bytes:
    """Return a reply with other addresses.

    Args:
        api: Number of the API, one of `REPLACED`.
        version: Its version.
        frame: The reply without its length.
        stand_in: Returns what stands for the address of a broker; asked by ascending node id.

    Raises:
        UnsupportedVersion: the version is newer than what is known here.
        WireFormatError: the reply is malformed.
    """
    key = ApiKey(api)
    correlation_id, reply = response_reader(key, version)(frame)
    entries: tuple[Any, ...] = getattr(reply, _ENTRIES[key])
    known = {
        (each.host, each.port): stand_in((each.host, each.port))
        for each in sorted(entries, key=lambda each: each.node_id)
        if each.host and each.port > 0
    }
    changed = tuple(
        replace(each, host=known[place][0], port=known[place][1])
        if (place := (each.host, each.port)) in known
        else each
        for each in entries
    )
    return response_writer(key, version)(correlation_id, replace(reply, **{_ENTRIES[key]: changed}))


UNREADABLE: Final = (UnsupportedVersion, WireFormatError)
"""What `with_addresses` raises where a reply is not as Kafka has it."""
