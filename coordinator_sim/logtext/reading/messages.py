"""Finds the row of a log line. A row matches by its required words alone."""

import re
from typing import Final

from coordinator_sim.logtext.wordings.catalogue import CATALOGUE
from coordinator_sim.logtext.wordings.clients import CLIENTS
from coordinator_sim.logtext.wordings.kafkajs import KAFKAJS
from coordinator_sim.logtext.wordings.librdkafka import LIBRDKAFKA
from coordinator_sim.logtext.wordings.python_clients import PYTHON_CLIENTS
from coordinator_sim.logtext.wordings.rows import Row

Anchored = tuple[tuple[str, Row], ...]
"""Rows in order, each with the text by which a message is first tried: cheaper than a pattern."""


def _anchored(rows: tuple[Row, ...]) -> Anchored:
    """Return the rows, each with its literal text that is rarest among all rows."""
    texts = ["\n".join(row.required) for row in rows]

    def rarity(literal: str) -> tuple[int, int]:
        return sum(literal in text for text in texts), -len(literal)

    return tuple((min(row.required, key=rarity), row) for row in rows)


_BROKERS: Final = _anchored(CATALOGUE)
JAVA: Final = _anchored(CLIENTS)
PYTHON: Final = _anchored((*PYTHON_CLIENTS, *CLIENTS))
RDKAFKA: Final = _anchored(LIBRDKAFKA)
NODE: Final = _anchored(KAFKAJS)


def find(message: str, rows: Anchored = _BROKERS) -> tuple[Row, re.Match[str]] | None:
    """Return the row of a message and its match, a coordinator's by default; None for none."""
    for anchor, row in rows:
        if anchor in message:
            match = row.match(message)
            if match is not None:
                return row, match
    return None
