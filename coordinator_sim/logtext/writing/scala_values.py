"""Scala's formatting of values in log messages: options, sets, a member's metadata."""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.kafka.orders.iteration_order import scala_set_order
from coordinator_sim.trace.events import TraceEvent

_SMALL: Final = 4
"""Largest size of Scala's small sets; larger ones print as HashSet."""


def option(value: str | None) -> str:
    """Format an optional value: `None` or `Some(x)`."""
    return "None" if value is None else f"Some({value})"


def scala_set(names: Sequence[str]) -> str:
    """Format an immutable set; small ones keep their order. Source: scala 2.13, Set1-4, HashSet."""
    if len(names) <= _SMALL:
        return f"Set({', '.join(names)})"
    return f"HashSet({', '.join(scala_set_order(names))})"


def scala_key_set(names: Sequence[str]) -> str:
    """Format the keys of an immutable map. Source: scala 2.13, keySet of Map1-4 and HashMap."""
    return f"Set({', '.join(scala_set_order(names))})"


def member_metadata(event: TraceEvent, *, ending: str = "") -> str:
    """Format the member of an event as MemberMetadata.toString.

    Args:
        event: Event with the member's columns, and its protocols in attribute `protocols`.
        ending: Text that a release prints before the closing bracket.
    """
    protocols = event.attrs.get("protocols", "").replace(",", ", ")
    return (
        f"MemberMetadata(memberId={event.member_id}, "
        f"groupInstanceId={option(event.group_instance_id)}, clientId={event.client_id}, "
        f"clientHost={event.client_host}, sessionTimeoutMs={event.session_timeout_ms}, "
        f"rebalanceTimeoutMs={event.rebalance_timeout_ms}, "
        f"supportedProtocols=List({protocols}){ending})"
    )
