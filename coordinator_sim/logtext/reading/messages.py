"""Catalogue of a coordinator's log messages. A template matches by its fixed words alone."""

import re
from typing import Final

from coordinator_sim.logtext.reading.group_messages import CONSUMER_GROUPS, MEMBERS, REBALANCE
from coordinator_sim.logtext.reading.log_messages import KNOWN, LOADING, OFFSETS
from coordinator_sim.logtext.reading.templates import Template

CATALOGUE: Final = (*REBALANCE, *MEMBERS, *CONSUMER_GROUPS, *LOADING, *OFFSETS, *KNOWN)
"""Templates in order: the first whose anchor and pattern match wins."""


def find(message: str) -> tuple[Template, re.Match[str]] | None:
    """Return the template of a coordinator's message and its match; None for an unknown message."""
    for template in CATALOGUE:
        if template.anchor in message:
            match = template.match(message)
            if match is not None:
                return template, match
    return None
