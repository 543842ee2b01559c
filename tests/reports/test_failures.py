"""What a user is told of a Spark job that failed: one line, with the reason and the remedy."""

import pytest

from coordinator_sim.errors import DataError
from coordinator_sim_reports.failures import LOST_WORKERS, failure_named

TRACEBACK = """Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 times
Traceback (most recent call last):
  File "worker.py", line 1, in main
{raised}

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException
java.lang.RuntimeException: the JVM's own
"""


MISSING = "importlib.metadata.PackageNotFoundError: No package metadata was found for crc32c"
UNSEEN = "FileNotFoundError: [Errno 2] No such file or directory: '/logs/server.log'"
LOST = "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (MISSING, f"a Spark worker failed: {MISSING}"),
        (
            UNSEEN,
            f"a Spark worker failed: {UNSEEN}; workers must see the logs under the same paths",
        ),
        (LOST, LOST_WORKERS),
    ],
)
def test_a_failure_of_workers_is_one_line(raised: str, told: str) -> None:
    """The exception of the worker, not the JVM's; an advice where it helps."""
    errors = pytest.importorskip("pyspark.errors", reason="needs the spark extra")

    with pytest.raises(DataError) as failed, failure_named("logs"):
        raise errors.PySparkException(TRACEBACK.format(raised=raised))

    assert str(failed.value) == told
    assert "\n" not in told
