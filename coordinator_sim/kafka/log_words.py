"""Generations of the coordinator's log messages."""

from enum import Enum, unique


@unique
class LogWords(Enum):
    """In which words a coordinator logs; each lasted for several releases.

    Source: GroupCoordinator.scala of 0.10.2, 2.8 and 3.9; GroupMetadataManager.java of 4.4.
    """

    RESTABILIZE = "restabilize"
    """Up to 0.10.2: groups are prepared "to restabilize"; no reasons, no members."""
    DEPARTURES_FIRST = "departures first"
    """2.8: reasons; a departure is logged before the rebalance that it causes."""
    CLIENT_REASONS = "client reasons"
    """3.2 to 3.9: clients' reasons (KIP-800); a departure is logged after its rebalance."""
    JAVA = "java"
    """4.0 and later: the Java coordinator's."""
