"""Folders behind URIs that are written in Python: made on this machine, then put in their place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, cast
from uuid import uuid4

from coordinator_sim.ingest.appending import Appending
from coordinator_sim.runs.run_directory import check_replaceable
from coordinator_sim.trace.schema import APPENDABLE_NAME, MANIFEST_NAME
from coordinator_sim_reports.hadoop_files import HadoopPath

if TYPE_CHECKING:
    from coordinator_sim.ingest.importing import Importing
    from coordinator_sim.ingest.writing import ReadLogs

_LAST_FILES: Final = (APPENDABLE_NAME, MANIFEST_NAME)
"""Files without which a folder is no whole trace: they are put in place last."""


@contextmanager
def replaced_behind_uri(out: Path) -> Iterator[Path]:
    """Yield a folder to write a trace to, which takes the place of `out` when the block is done.

    An older trace stays as it was until the whole new one lies beside it. An object store renames
    by copying, so that there the last step takes as long as a copy.

    Args:
        out: A `HadoopPath`.

    Raises:
        ConfigError: `out` is a file, or holds something that is no trace.
        DataError: The file system refuses.
    """
    check_replaceable(out)
    target = cast("HadoopPath", out)
    with TemporaryDirectory(prefix="coordinator-sim-trace-") as scratch:
        fresh = Path(scratch) / "trace"
        yield fresh
        beside = target.parent / f".{target.name}-{uuid4().hex}"
        try:
            beside.copy_from(fresh)
            target.remove()
            beside.rename(target)
        finally:
            beside.remove()


def append_behind_uri(
    appending: Appending,
    trace: Path,
    importing: "Importing",
    advance: Callable[[int], None],
    read_logs: "ReadLogs | None",
) -> None:
    """Append files to a trace behind a URI; its files that do not change are not touched.

    All that is new lies beside the trace before anything of it is replaced.

    Args:
        appending: What `prepare` was called of.
        trace: The trace, a `HadoopPath`.
        importing: What `prepare` found.
        advance: Told the bytes used so far, now and then.
        read_logs: Gives the logs that are read elsewhere.

    Raises:
        DataError: As `Appending.write`, and where the file system refuses.
    """
    target = cast("HadoopPath", trace)
    with TemporaryDirectory(prefix="coordinator-sim-trace-") as scratch:
        fresh = Path(scratch) / "trace"
        appending.write(importing, advance, read_logs, into=fresh)
        beside = target.parent / f".{target.name}-{uuid4().hex}"
        try:
            beside.copy_from(fresh)
            for path in list(_changing(appending, target)):
                path.remove()
            for relative in _whole_last(fresh):
                (target / relative).remove()
                (beside / relative).rename(target / relative)
        finally:
            beside.remove()


def _changing(appending: Appending, trace: HadoopPath) -> Iterator[HadoopPath]:
    """The Parquet files of a trace that appending rewrites or removes."""
    for name in appending.table_names:
        table = trace / name
        for path in table.rglob("part-*.parquet") if table.is_dir() else ():
            if not appending.is_settled(name, cast("Path", path)):
                yield path


def _whole_last(folder: Path) -> list[str]:
    """The files of a trace, those last without which it is none."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return sorted(names, key=lambda name: (name in _LAST_FILES, name))
