"""How Scala prints what stands in log messages: options, sets, a member's metadata."""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.protocol.iteration_order import scala_set_order
from coordinator_sim.trace.events import TraceEvent

_SMALL: Final = 4
"""Scala has sets of their own up to this size; larger ones are hash sets and say so."""


def option(value: str | None) -> str:
    """An optional value: `None` or `Some(x)`."""
    return "None" if value is None else f"Some({value})"


def scala_set(names: Sequence[str]) -> str:
    """An immutable set; a small one in the order given. Source: scala 2.13, Set1-4 and HashSet."""
    if len(names) <= _SMALL:
        return f"Set({', '.join(names)})"
    return f"HashSet({', '.join(scala_set_order(names))})"


def scala_key_set(names: Sequence[str]) -> str:
    """The keys of an immutable map. Source: scala 2.13, Map1-4 and HashMap, their keySet."""
    return f"Set({', '.join(scala_set_order(names))})"


def member_metadata(event: TraceEvent, *, ending: str = "") -> str:
    """The member of an event as MemberMetadata.toString prints it.

    Args:
        event: Has the member's columns, and its protocols' names in attribute `protocols`.
        ending: What a release prints before the closing bracket.
    """
    protocols = event.attrs.get("protocols", "").replace(",", ", ")
    return (
        f"MemberMetadata(memberId={event.member_id}, "
        f"groupInstanceId={option(event.group_instance_id)}, clientId={event.client_id}, "
        f"clientHost={event.client_host}, sessionTimeoutMs={event.session_timeout_ms}, "
        f"rebalanceTimeoutMs={event.rebalance_timeout_ms}, "
        f"supportedProtocols=List({protocols}){ending})"
    )
