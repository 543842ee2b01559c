from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coordinator_sim_reports.local_engine import LocalEngine


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
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator["LocalEngine"]:
    """Computes tables in this process."""
    pytest.importorskip("duckdb", reason="needs the report extra")
    from coordinator_sim_reports.local_engine import LocalEngine

    with LocalEngine(tmp_path_factory.mktemp("tables"), str, ()) as local:
        yield local
