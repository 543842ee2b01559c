"""The log directory of a served cluster: opened with a real clock and real chance, and told of."""

import logging
import time
import uuid
from pathlib import Path
from typing import Final

from coordinator_sim.mini_broker.kept_cluster import KeptCluster
from coordinator_sim.storage.files import Files
from coordinator_sim.storage.log_directory import DirectorySettings, LogDirectory

_LOG: Final = logging.getLogger(__name__)


def open_kept(
    path: Path,
    *,
    node_id: int,
    cluster_id: str,
    sync_always: bool = False,
    files: Files | None = None,
) -> KeptCluster:
    """Open a directory, recover it where that is due, and log what was found.

    Args:
        path: Of it; made if absent. One of another cluster keeps its id.
        node_id: For a new directory.
        cluster_id: For a new directory.
        sync_always: Whether every append and change is on the medium before it is answered.
        files: The file system; None for the real one.

    Raises:
        ConfigError: another process has it, or it is no directory or a damaged one.
        OSError: it cannot be read or mended.
    """
    directory = LogDirectory(
        DirectorySettings(
            path=str(path),
            node_id=node_id,
            new_id=lambda: uuid.uuid4().bytes,
            new_cluster_id=cluster_id,
            sync_always=sync_always,
            elapsed_ms=lambda: time.monotonic_ns() // 1_000_000,
        ),
        files,
    )
    try:
        kept = KeptCluster(directory)
    except BaseException:
        directory.abandon()
        raise
    for line in directory.report.lines():
        _LOG.warning("%s", line)
    return kept
