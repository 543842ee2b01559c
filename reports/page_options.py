"""Options of a report's page."""

from typing import Final

from msgspec import Struct

DEFAULT_TITLE: Final = "Rebalance and assignor report"


class PageLimits(Struct, frozen=True, kw_only=True):
    """Largest parts of the tables in a page and a summary; the Parquet tables hold all rows.

    Args:
        groups: Groups of the summary, and of the counts by reason.
        causes: Rows of the table of groups and reasons; a group is listed whole or not at all.
        drawn_groups: Lines of the timeline.
        drawn: Marks of the timeline.
        listed: Rows of the table of rebalances.
        windows: Fault windows, drawn and listed; the first ones of each run.
    """

    groups: int = 2_000
    causes: int = 200
    drawn_groups: int = 40
    drawn: int = 5_000
    listed: int = 200
    windows: int = 100


class PageOptions(Struct, frozen=True, kw_only=True):
    """How the page of a report shows its rows.

    Args:
        title: Heading of the page.
        limits: Largest parts of long tables.
        is_compared: Whether the runs are set beside each other, so that times count from the start
            of each; so it is wherever some run is simulated, which has no calendar.
    """

    title: str = DEFAULT_TITLE
    limits: PageLimits = PageLimits()
    is_compared: bool = False
