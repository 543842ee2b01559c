"""Balance of a generation's resources over its members."""

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.transforms.moves import KIND, by_kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def imbalance(generations: "DataFrame", resources: "DataFrame", runs: "DataFrame") -> "DataFrame":
    """Return spread, coefficient of variation and Gini index of the resources per member.

    Members without resources count; generations without members are absent.

    Input: dense generations; resource lists; runs, for the end of the trace.
    Output: key (generation, kind): `sync_us`; `spread` (most less fewest), `cv` (population) and
    `gini` (0: all equal; both 0 where nothing is owned); `lasted_us` until the next generation's
    assignment or the end of the trace, to weigh by.
    """
    history = Window.partitionBy(*C.LIFE_KEY, KIND).orderBy(C.GENERATION)
    ends = runs.select(C.TRACE_ID, F.col("last_ts_us").alias("trace_end_us"))
    until = F.coalesce(F.lead(C.SYNC_US).over(history), F.col("trace_end_us"))
    rows = (
        by_kind(generations, resources)
        .select(*C.GENERATION_KEY, KIND, C.SYNC_US, C.LOADS)
        .join(F.broadcast(ends), C.TRACE_ID)
        .withColumn("lasted_us", F.greatest(F.lit(0), until - F.col(C.SYNC_US)))
        .where(F.size(C.LOADS) > 0)
        .withColumn("n", F.size(C.LOADS))
        .withColumn("sum", F.expr("aggregate(loads, 0D, (s, x) -> s + x)"))
        .withColumn("squares", F.expr("aggregate(loads, 0D, (s, x) -> s + x * x)"))
        .withColumn(
            "ranked",
            F.expr(
                "aggregate(transform(array_sort(loads), (x, i) -> (i + 1D) * x), 0D, "
                "(s, x) -> s + x)"
            ),
        )
    )
    n, total = F.col("n"), F.col("sum")
    variance = F.greatest(F.lit(0.0), F.col("squares") / n - (total / n) * (total / n))
    owns = total > 0
    return rows.select(
        *C.GENERATION_KEY,
        KIND,
        C.SYNC_US,
        "lasted_us",
        (F.array_max(C.LOADS) - F.array_min(C.LOADS)).alias("spread"),
        F.when(owns, F.sqrt(variance) / (total / n)).otherwise(0.0).alias("cv"),
        F.when(owns, 2 * F.col("ranked") / (n * total) - (n + 1) / n).otherwise(0.0).alias("gini"),
    )
