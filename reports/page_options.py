"""Options of a report's page."""

from typing import Final

from msgspec import Struct

DEFAULT_TITLE: Final = "Rebalance and assignor report"


class PageLimits(Struct, frozen=True, kw_only=True):
    """Largest parts of the tables in a page and a summary; the Parquet tables hold all rows.

    Args:
        groups: Rows of the table of groups.
        drawn_groups: Lines of the timeline, and groups with a section of their own.
        drawn: Rebalances that are drawn.
        listed: Rows of the table of rebalances.
        windows: Fault windows, drawn and listed; the first ones of each run.
        findings: Findings that are shown.
        weighed_events: Events of the traces whose findings have their savings computed.
        mapped_groups: Rows of the map of densities, which is drawn of more than `drawn_groups`.
        days: Days with costs; the costliest.
        deploys: Deploys with costs; the costliest.
        storms: Storms; the costliest.
        slices: Slices of time of that map, and of the strip from which a reader chooses a range.
        ranged: Rebalances from which the page computes the figures of a range anew; where there are
            more, such figures are of the whole trace.
        section_rows: Rows of the table of rebalances in a group's section.
        members: Lanes in a group's section.
        resources: Rows of owners in a group's section.
        intervals: Intervals of ownership, or waits for members, drawn in a group's section.
    """

    groups: int = 2_000
    drawn_groups: int = 40
    drawn: int = 4_000
    listed: int = 200
    windows: int = 100
    findings: int = 50
    weighed_events: int = 100_000
    mapped_groups: int = 60
    days: int = 31
    deploys: int = 30
    storms: int = 30
    slices: int = 120
    ranged: int = 10_000
    section_rows: int = 20
    members: int = 40
    resources: int = 40
    intervals: int = 2_000


class PageOptions(Struct, frozen=True, kw_only=True):
    """How the page of a report shows its rows.

    Args:
        title: Heading of the page.
        limits: Largest parts of long tables.
        is_compared: Whether the runs are set beside each other, so that times count from the start
            of each; so it is wherever some run is simulated, which has no calendar.
        shown: The parts of the traces' times that the page is of; empty for all.
        words: Options of commands that choose them.
    """

    title: str = DEFAULT_TITLE
    limits: PageLimits = PageLimits()
    is_compared: bool = False
    shown: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
