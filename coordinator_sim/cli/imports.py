"""`Import`: a log that `ingest` reads, and what came of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coordinator_sim.cli.log_files import LogFileReader
    from coordinator_sim.logtext.reading.summary import IngestSummary


@dataclass(slots=True)
class Import:
    """One log: where it is, how it is read, what came of it.

    A copy of another log is not read; one that overlaps others gives only what they have not.
    """

    path: Path
    summary: "IngestSummary"
    reader: "LogFileReader | None" = None
    problem: str | None = None
    copy_of: str | None = None
