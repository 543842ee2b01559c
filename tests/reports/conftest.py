from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frame = Callable[[str, Sequence[dict[str, Any]]], "DataFrame"]


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """One small session for all tests."""
    pytest.importorskip("pyspark", reason="needs the spark extra")
    from coordinator_sim.errors import MissingDependencyError
    from coordinator_sim_reports.session import spark_session

    try:
        with spark_session(
            "local[1]", shuffle_partitions=1, adaptive=False, small=True, brief=True
        ) as session:
            yield session
    except MissingDependencyError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def frame(spark: "SparkSession") -> Frame:
    """Makes a frame of a table of the trace, or of a column list, from partial rows."""
    from coordinator_sim.trace.schema import event_schema, generation_schema, resource_schema
    from coordinator_sim_reports.sources import ddl_of
    from coordinator_sim_reports.workers.dense_files import PIECE_SCHEMA

    ddls = {
        "dense_pieces": ddl_of(PIECE_SCHEMA),
        "events": ddl_of(event_schema()) + ", cluster_id string",
        "generations": ddl_of(generation_schema()),
        "resources": ddl_of(resource_schema()),
    }

    def make(table: str, rows: Sequence[dict[str, Any]]) -> "DataFrame":
        ddl = ddls.get(table, table)
        names = spark.createDataFrame([], ddl).columns
        return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], ddl)

    return make
