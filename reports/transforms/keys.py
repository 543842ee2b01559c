"""Keys of groups as numbers, which are sorted and compared in a fraction of the time of texts."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

if TYPE_CHECKING:
    from pyspark.sql import Column


def group_hash() -> "Column":
    """Return the hash of a group's key; two groups may have the same."""
    return F.xxhash64(*C.GROUP_KEY).alias(C.GROUP_HASH)
