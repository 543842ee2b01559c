"""How the messages of one API become Kafka's fields, and come back."""

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.wire.schema import ZERO_UUID, Data

Q = TypeVar("Q")
R = TypeVar("R")


class Form(Struct, Generic[Q, R], frozen=True, kw_only=True):
    """The four conversions of one API; each takes the version.

    A writer fills fields of all versions and the schema takes those of the one; only where
    versions differ in shape does it look at the version. `read_response` and `write_response`
    get the request too, which old versions of a response rely on.
    """

    read_request: Callable[[Data, int], Q]
    write_request: Callable[[Q, int], Data]
    read_response: Callable[[Data, int, Q | None], R]
    write_response: Callable[[R, int, Q | None], Data]


def error_of(entry: Data) -> ErrorCode:
    """The `errorCode` of a response or of an entry in one.

    Raises:
        DataError: a number that is no group API's error.
    """
    number = entry["errorCode"]
    try:
        return ErrorCode(number)
    except ValueError:
        raise DataError(f"errorCode {number} is none that a group API answers") from None


def id_or_none(topic: Data) -> bytes | None:
    """The `topicId` of a topic; None where the version has none or it is zero."""
    topic_id: bytes = topic.get("topicId", ZERO_UUID)
    return None if topic_id == ZERO_UUID else topic_id


def topic_fields(name: str, topic_id: bytes | None) -> Data:
    """How a topic is named: by name or by id, as the version has it."""
    return {"name": name, "topicId": ZERO_UUID if topic_id is None else topic_id}
