"""Tables of a finished report, for notebooks: as pandas frames and as Spark frames."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim_reports.session import DEFAULT_MASTER, check_extra, spark_session

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession


class ReportTables:
    """Tables of a report by their names; see `docs/trace-schema.md` for what each holds.

    A context manager: leaving it stops the Spark session that `spark` started, if it did.

    Args:
        directory: Folder with one folder of Parquet files per table.
        master: Spark master URL, used where no session is active.
    """

    def __init__(self, directory: Path, master: str) -> None:
        self._directory = directory
        self._master = master
        self._session: SparkSession | None = None
        self._stack = ExitStack()

    @property
    def names(self) -> list[str]:
        """Names of the tables, sorted."""
        return sorted(path.name for path in self._directory.iterdir() if path.is_dir())

    def pandas(self, name: str, columns: Sequence[str] | None = None) -> "pd.DataFrame":
        """Read a table into memory; no Spark is started.

        Args:
            name: Name of the table.
            columns: The columns wanted; None for all.

        Raises:
            ConfigError: there is no such table or column; the message names those that there are.
        """
        import pyarrow.parquet as pq

        dataset = pq.ParquetDataset(self._path(name))
        unknown = sorted(set(columns or ()) - set(dataset.schema.names))
        if unknown:
            raise ConfigError(
                f"table {name!r} has no column {unknown[0]!r}; it has "
                f"{', '.join(dataset.schema.names)}"
            )
        frame: pd.DataFrame = dataset.read(columns).to_pandas()
        return frame

    def spark(self, name: str) -> "DataFrame":
        """Return a table as a Spark frame of the active session, or of one that is started.

        Args:
            name: Name of the table.

        Raises:
            ConfigError: there is no such table; the message names those that there are.
            MissingDependencyError: the `spark` extra or a Java runtime is missing.
        """
        path = self._path(name)
        if self._session is None:
            self._session = self._stack.enter_context(spark_session(self._master, small=True))
        return self._session.read.parquet(str(path.absolute()))

    def close(self) -> None:
        """Stop the Spark session if this object started it; an earlier session keeps running."""
        self._session = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _path(self, name: str) -> Path:
        if name not in self.names:
            raise ConfigError(f"there is no table {name!r}; there are {', '.join(self.names)}")
        return self._directory / name


def load(path: Path | str, *, master: str = DEFAULT_MASTER) -> ReportTables:
    """Open the tables of a report.

    Args:
        path: The folder that `report --out`, `demo` or `sweep` wrote, or its `tables` in it.
        master: Spark master URL, used where no session is active.

    Raises:
        DataError: the folder holds no tables of a report.
        MissingDependencyError: the `spark` extra is missing.
    """
    check_extra()
    folder = Path(path)
    tables = folder / "tables" if (folder / "tables").is_dir() else folder
    if not (tables / "runs").is_dir():
        raise DataError(f"{path} holds no tables of a report; name the folder that --out named")
    return ReportTables(tables, master)
