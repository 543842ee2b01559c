"""Frames of rows that the driver has: they are part of the plan, and no task makes them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coordinator_sim_reports.columns import arrays_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def listed(spark: "SparkSession", rows: Sequence[tuple[object, ...]], columns: str) -> "DataFrame":
    """Return rows as a frame; of none, the plan knows that there are none.

    Given to Spark as Python objects, they would be read back by workers that are started for it.

    Args:
        spark: The session of the job.
        rows: Values in the order of the columns.
        columns: Names and types as Spark writes them.
    """
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    kinds: Any = StructType.fromDDL(columns)
    schema = to_arrow_schema(kinds)
    # The stubs of PySpark know of no Arrow table.
    make: Any = spark.createDataFrame
    frame: DataFrame = make(pa.Table.from_arrays(arrays_of(rows, schema), schema=schema), kinds)
    return frame
