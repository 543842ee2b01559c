"""Further files of a cluster are appended to its trace, without reading the earlier ones again.

What an import puts aside beside its trace holds everything that a later event may depend on, and
the last events as long as a later file can come before them. The files of the trace that are
written for good stay as they are: what is appended goes to files beside them.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.ingest.importing import (
    ContentsOf,
    Earlier,
    FetchFiles,
    Importing,
    Options,
    as_named,
    prepare,
    replaced_when_whole,
)
from coordinator_sim.ingest.saved_state import load
from coordinator_sim.ingest.writing import Imported, ReadLogs, write_imported
from coordinator_sim.runs.parquet import part_number
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.trace.schema import (
    APPENDABLE_NAME,
    EVENTS_DIR,
    GENERATIONS_DIR,
    RESOURCES_DIR,
)


class Appending:
    """Appends files to a trace.

    Args:
        trace: The trace, as `ingest` wrote it.
        day_first: See `Options`.

    Attributes:
        options: How its files were read, and are read.

    Raises:
        ConfigError: There is no such directory, or its trace is in JSON Lines.
        DataError: It is no trace, none of files, or one of another release.
    """

    def __init__(self, trace: Path, day_first: bool | None = None) -> None:
        info = read_run(trace).info
        path = trace / APPENDABLE_NAME
        if info.format != "parquet":
            raise ConfigError(f"{trace} is in JSON Lines; files are appended to Parquet alone")
        if not path.is_file():
            raise DataError(
                f"{trace} has no {APPENDABLE_NAME}: files are appended to what `ingest` wrote"
            )
        loaded = load(path.read_bytes(), str(path))
        # Names of tables become paths.
        if (
            not isinstance(loaded, Imported)
            or loaded.run is None
            or not loaded.run.tables.keys() == {EVENTS_DIR, GENERATIONS_DIR, RESOURCES_DIR}
        ):
            raise DataError(f"{path} is damaged: ingest all files together, without --append-to")
        self._trace = trace
        self._imported = loaded
        self._tables = loaded.run.tables
        self.options = Options(
            zone=_zone(loaded.tz, path),
            tz=loaded.tz,
            cluster=loaded.info.cluster_id,
            day_first=day_first,
            keep_raw=loaded.keep_raw,
            apart_us=loaded.apart_us,
        )

    def prepare(
        self,
        paths: list[Path],
        contents_of: ContentsOf | None = None,
        fetch: FetchFiles = as_named,
    ) -> Importing:
        """Find the files, see what each is, and which were read before; see `importing.prepare`.

        Raises:
            ConfigError: A path does not exist, or a folder holds nothing to read.
            DataError: A file is of a kind that the trace has none of, or shares lines with one that
                was read before.
        """
        earlier = Earlier(self._imported.contents, self._imported.marks)
        importing = prepare(paths, contents_of, earlier, fetch, self.options)
        known = self._imported.stages.kinds
        for one in importing.usable:
            fresh = [kind for kind in one.kinds if kind not in known]
            if fresh:
                has = ", ".join(sorted(kind.value for kind in known))
                raise DataError(
                    f"{one.name} is a {fresh[0].value}, and the trace was made of files of other "
                    f"kinds ({has}), to which it may tell more: ingest all files together, "
                    "without --append-to"
                )
        return importing

    def write(
        self,
        importing: Importing,
        advance: Callable[[int], None],
        read_logs: ReadLogs | None = None,
        into: Path | None = None,
    ) -> None:
        """Append the events of files; the trace stays as it was until all are read.

        Args:
            importing: What `prepare` found; gets its counts and problems.
            advance: Told the bytes used so far, now and then.
            read_logs: Gives the logs that are read elsewhere, by their names; None for none.
            into: A folder for the files that are new or change, instead of the trace; see
                `is_settled`.

        Raises:
            DataError: A file begins before what is written for good, or is of another cluster.
        """
        imported = self._imported
        known = {one.name for one in imported.files}
        usable = {id(one) for one in importing.usable}
        imported.files += [
            one for one in importing.files if id(one) in usable or one.name not in known
        ]
        imported.stages.add(importing.usable)
        if into is not None:
            write_imported(imported, importing, self.options, into, advance, read_logs)
            return
        with replaced_when_whole(self._trace) as directory:
            self._link_parts(directory)
            write_imported(imported, importing, self.options, directory, advance, read_logs)

    @property
    def table_names(self) -> tuple[str, ...]:
        """Folders of the trace that hold its tables."""
        return tuple(self._tables)

    def is_settled(self, table: str, path: Path) -> bool:
        """Whether a file of a table stays as it is, whatever is appended."""
        return part_number(path) < self._tables[table].part

    def _link_parts(self, directory: Path) -> None:
        """Have the files that do not change in another directory, too."""
        for name in self._tables:
            for path in sorted((self._trace / name).rglob("part-*.parquet")):
                if self.is_settled(name, path):
                    target = directory / path.relative_to(self._trace)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    _link(path, target)


def _zone(name: str, path: Path) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError) as error:
        raise DataError(f"{path} names the zone {name!r}, which is none here") from error


def _link(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except OSError:
        # Not every file system has links.
        shutil.copyfile(path, target)
