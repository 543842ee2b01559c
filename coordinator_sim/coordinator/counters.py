"""What a coordinator counts, for its metrics. Nothing here counts."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Totals since the coordinator was made.

    Attributes:
        offset_commits: By the Java coordinator one for each offset, also of a refused append; by
            the Scala one, one for each request whose append is through.
        offset_expirations: Offsets whose retention was over.
        offset_deletions: Offsets that OffsetDelete removed.
        completed_rebalances: By the Java coordinator, generations that became Stable; by the
            Scala one, assignments that leaders brought.
    """

    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    completed_rebalances: int = 0
