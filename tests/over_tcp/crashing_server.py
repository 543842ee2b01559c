"""A program: our server, but an OffsetDelete ends its process and a ListGroups makes it hang."""

import os
import time
from typing import Any

from coordinator_sim.cli.entry import main
from coordinator_sim.coordinator.coordinator import GroupCoordinator

handle = GroupCoordinator.handle


def handle_badly(self: GroupCoordinator, request: Any, *others: Any, **named: Any) -> Any:  # noqa: ANN401
    """Handle a request, unless it is one of the two."""
    match type(request).__name__:
        case "OffsetDeleteRequest":
            print("assertion failed: nobody deletes offsets", flush=True)  # noqa: T201
            os.abort()
        case "ListGroupsRequest":
            time.sleep(3600)
    return handle(self, request, *others, **named)


if __name__ == "__main__":
    GroupCoordinator.handle = handle_badly  # type: ignore[method-assign]
    main()
