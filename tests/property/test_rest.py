"""Whatever a worker is asked over HTTP, it answers, and lives on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.connect.effects import HttpRequest
from tests.unit.connect.worker_bench import WorkerBench

pytestmark = pytest.mark.property

PATHS = (
    "/",
    "/health",
    "/connectors",
    "/connectors?expand=info&expand=status",
    "/connectors/a",
    "/connectors/a/config",
    "/connectors/a/status",
    "/connectors/a/tasks",
    "/connectors/a/tasks/0/status",
    "/connectors/a/tasks/0/restart",
    "/connectors/a/restart",
    "/connectors/a/restart?includeTasks=true&onlyFailed=true",
    "/connectors/a/pause",
    "/connectors/a/resume",
    "/connectors/a/stop",
    "/connectors/a/topics",
    "/connectors/a/topics/reset",
    "/connectors/a/offsets",
    "/connectors/a/fence",
    "/connectors/%ff%zz?forward=no",
    "/connector-plugins?connectorsOnly=false",
    "/connector-plugins/FileStreamSource/config",
    "/connector-plugins/FileStreamSource/config/validate",
    "/admin/loggers/a?scope=cluster",
)
CONFIGS = st.sampled_from(
    [
        {"connector.class": "FileStreamSource", "topic": "t"},
        {"connector.class": "FileStreamSink", "topics": "t", "tasks.max": 3},
        {"connector.class": "FileStreamSink", "topics.regex": "["},
        {"connector.class": None},
        {"connector.class": "Gone"},
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)
BODIES = st.one_of(
    st.fixed_dictionaries({"name": st.just("a"), "config": CONFIGS | JSON}).map(json.dumps),
    CONFIGS.map(json.dumps),
    st.fixed_dictionaries({"offsets": JSON}).map(json.dumps),
    JSON.map(json.dumps),
    st.text(max_size=3),
)
REQUESTS = st.builds(
    lambda method, target, body: HttpRequest(
        method=method,
        target=target,
        headers={"content-type": "application/json"},
        body=body.encode(errors="surrogatepass"),
    ),
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    st.sampled_from(PATHS),
    BODIES,
)


@given(st.lists(REQUESTS, max_size=12))
def test_every_request_is_answered(requests: list[HttpRequest]) -> None:
    """With a status that HTTP knows, within the 90 seconds of a request."""
    bench = WorkerBench().start()
    bench.run(1_000)
    for request in requests:
        number = bench.send(request)
        bench.run(90_000)
        assert 200 <= bench.answers[number].status < 600
    assert not bench.worker.has_ended
