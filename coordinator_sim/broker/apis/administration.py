"""What the admin APIs share: errors with a message, and names that occur more than once."""

from collections.abc import Hashable, Iterable
from typing import Final, TypeVar

from msgspec import Struct

from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode

K = TypeVar("K", bound=Hashable)


class ApiError(Struct, frozen=True):
    """An error code with its message. Source: ApiError.java."""

    code: ErrorCode
    message: str | None = None

    @property
    def is_failure(self) -> bool:
        """Whether the code is not NONE."""
        return self.code is not ErrorCode.NONE


NO_ERROR: Final = ApiError(ErrorCode.NONE)


def told(code: ErrorCode) -> ApiError:
    """An error with Kafka's default message for its code."""
    return ApiError(code, error_message(code))


OVER_QUOTA: Final = told(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
"""Of a change of the cluster that a controller mutation quota refuses."""


def duplicates(names: Iterable[K]) -> dict[K, None]:
    """The names that occur more than once, as keys in the order of their first occurrence."""
    seen: dict[K, bool] = {}
    for name in names:
        seen[name] = name in seen
    return {name: None for name, is_duplicate in seen.items() if is_duplicate}
