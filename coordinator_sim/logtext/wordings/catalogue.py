"""All log lines of a coordinator, in the order in which they are tried and written."""

from typing import Final

from coordinator_sim.logtext.wordings.consumer_groups import CONSUMER_GROUPS
from coordinator_sim.logtext.wordings.known import KNOWN
from coordinator_sim.logtext.wordings.members import MEMBERS
from coordinator_sim.logtext.wordings.partitions import PARTITION_LINES
from coordinator_sim.logtext.wordings.rebalances import REBALANCES

CATALOGUE: Final = (*REBALANCES, *MEMBERS, *CONSUMER_GROUPS, *PARTITION_LINES, *KNOWN)
"""Rows in order: a line is read as the first that matches; of the lines of one event, the first is
written first.
"""
