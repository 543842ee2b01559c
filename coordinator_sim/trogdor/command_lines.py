"""What an ExternalCommand and its program say to each other, a line of JSON each.

Source: kafka trunk, trogdor/.../trogdor/workload/ExternalCommandWorker.java.
"""

from typing import Any

from msgspec import UNSET, Struct

from coordinator_sim.trogdor import jackson, json_text
from coordinator_sim.trogdor.refusals import TrogdorRefusal


class Said(Struct, frozen=True, kw_only=True):
    """The fields of one line of a program's output.

    Args:
        status: The task's new status, any JSON value; UNSET for none.
        log: For the log; None for nothing.
        error: What the task ends with, empty for success; None for nothing.
    """

    status: Any = UNSET
    log: str | None = None
    error: str | None = None


def read_output(line: str) -> Said:
    """Parse a line of a program's standard output; no fields for a line that is no object."""
    try:
        found = jackson.read_tree(line)
    except TrogdorRefusal:
        return Said()
    if not isinstance(found, dict):
        return Said()
    return Said(
        status=found.get("status", UNSET),
        log=_as_text(found["log"]) if "log" in found else None,
        error=_as_text(found["error"]) if "error" in found else None,
    )


def _as_text(value: object) -> str:
    """A scalar as text; an object or a list as nothing. Source: Jackson, JsonNode.asText."""
    if isinstance(value, str):
        return value
    return "" if isinstance(value, dict | list) else json_text.compact(value).strip('"')


def start_line(task_id: str, workload: object) -> str:
    """What the program is given on its standard input, without the end of the line."""
    return jackson.text({"id": task_id, "workload": workload})
