"""Opens the log directory of a served cluster, with a real clock and random ids."""

import logging
import time
import uuid
from pathlib import Path
from typing import Final

from coordinator_sim.disk.files import Files
from coordinator_sim.disk.log_directory import DirectorySettings, LogDirectory
from coordinator_sim.errors import check_encodable
from coordinator_sim.server.kept_cluster import KeptCluster

_LOG: Final = logging.getLogger(__name__)


def open_kept(
    path: Path,
    *,
    node_ids: tuple[int, ...],
    cluster_id: str,
    sync_always: bool = False,
    accept_loss: bool = False,
    files: Files | None = None,
) -> KeptCluster:
    """Open a directory, recover it if needed, and log the report.

    Args:
        path: Path of the directory; created if absent. An existing one keeps its cluster id.
        node_ids: Ids of the brokers; a new directory gets the first one.
        cluster_id: Cluster id for a new directory.
        sync_always: Whether every append and change is on disk before it is answered.
        accept_loss: Whether to go on without lost acknowledged data.
        files: The file system; None for the real one.

    Raises:
        ConfigError: another process has it, it is no directory, or acknowledged data is missing.
        OSError: it cannot be read or repaired.
    """
    check_encodable(path)
    directory = LogDirectory(
        DirectorySettings(
            path=str(path),
            node_id=node_ids[0],
            node_ids=node_ids,
            new_id=lambda: uuid.uuid4().bytes,
            new_cluster_id=cluster_id,
            sync_always=sync_always,
            accept_loss=accept_loss,
            elapsed_ms=lambda: time.monotonic_ns() // 1_000_000,
        ),
        files,
    )
    try:
        kept = KeptCluster(directory)
    except BaseException:
        directory.abandon()
        raise
    finally:
        _warn(directory.report.lines(accept_loss=accept_loss))
    directory.on_report = _warn
    return kept


def _warn(lines: list[str]) -> None:
    for line in lines:
        _LOG.warning("%s", line)
