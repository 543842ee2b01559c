"""No call of the control surface, however wild, makes the server fail, hang or sicken."""

import asyncio
import json
import string
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import get_type_hints
from urllib.parse import quote

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.server.control.routes import ROUTES, ControlRoute
from coordinator_sim.server.properties import listeners_of
from coordinator_sim.server.serving import ControlOptions, ServeOptions, Serving

pytestmark = pytest.mark.property

LIMIT_S = 20
"""For one answer; most come within milliseconds."""
SOUND = {
    "partitions": st.integers(1, 3),
    "timeout_ms": st.integers(0, 20),
    "name": st.sampled_from(["orders", "new", "evil\n", ".", ".."]),
    "clock": st.sampled_from(
        ["wall", "virtual", "virtual auto", "scaled 2", "scaled 1e308", "scaled nan", "scaled 0"]
    ),
    "ms": st.none() | st.integers(0, 10**12),
    "group_ms": st.integers(0, 10**14),
    "within_ms": st.none() | st.integers(0, 10**9),
    "group": st.sampled_from(
        [
            {"group_id": "g", "state": "Stable"},
            {"group_id": "", "members": 0, "generation": 1},
            {"group_id": "g", "state": "Dead"},
            {"group_id": "g"},
        ]
    ),
    "fault": st.sampled_from([{"fault_id": 1}, {"fault_id": 1, "hits": 9}, {"fault_id": 0}]),
    "action": st.sampled_from(
        [
            {"do": "drop"},
            {"do": "delay", "ms": 10**30},
            {"do": "error", "error": "NOT_COORDINATOR"},
            {"do": "move-coordinator", "to": 99},
            {"do": "slow-append", "ms": 5},
            {"do": "reorder"},
            {"do": "duplicate"},
            {"do": "slow-append", "ms": -(10**30)},
            {"do": "nothing"},
        ]
    ),
    "match": st.sampled_from(
        [{}, {"api": "Fetch", "group": "g"}, {"min_version": 9, "max_version": 1}, {"broker": 99}]
    ),
}
"""Values that a field may have, or may have as far as its type goes."""
WILD_NUMBERS = st.sampled_from(
    [0, -1, 1, 99, 1 << 31, 1 << 63, -(1 << 63) - 1, 1 << 64, 10**30, 1e308, -0.0, 0.5]
)
RAW_NUMBERS = ["9" * 5_000, "-" + "9" * 5_000, "1e999", "NaN", "Infinity", "00", "0x1", "1_0"]
WILD_TEXTS = st.sampled_from(
    ["", "\0", "a\0b", "\n", "x" * 5_000, "../" * 50, "%00", "\u0661", "\ud800", *RAW_NUMBERS]
) | st.text(string.printable, max_size=10)
DEEP = st.sampled_from([[], {}, "deep"])
WILD = st.none() | st.booleans() | WILD_NUMBERS | WILD_TEXTS | DEEP
DEPTH = 100_000


def fields_of(route: ControlRoute) -> list[str]:
    """The fields of a route's body, and one that it has not."""
    return ["stranger"] if route.body is None else [*get_type_hints(route.body), "stranger"]


@st.composite
def bodies(draw: st.DrawFn, route: ControlRoute) -> bytes:
    """Sound bodies with wild values in them, and what is no JSON at all."""
    shape = draw(st.integers(0, 9))
    if shape == 0:
        return draw(st.sampled_from([b"", b"{", b"\xff\xfe", b"null", b"[]", b"7", b'"x"']))
    if shape == 1:
        return b"[" * DEPTH + b"]" * DEPTH
    if shape == 2:
        return b'{"a":' * DEPTH + b"1" + b"}" * DEPTH
    parts = []
    for name in draw(st.lists(st.sampled_from(fields_of(route)), max_size=4)):
        value = draw(SOUND.get(name, WILD) if draw(st.booleans()) else WILD)
        raw = draw(st.booleans()) and isinstance(value, str) and value in RAW_NUMBERS
        text = value if raw else json.dumps(value)
        parts.append(f"{json.dumps(name)}:{text}")
    return ("{" + ",".join(parts) + "}").encode("utf-8", "surrogatepass")


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, str, bytes]:
    """Method, path with query, and body of a call near to one that there is."""
    route = draw(st.sampled_from(ROUTES))
    path = route.path.replace(":path", "")
    for name in ("broker_id", "name", "partition", "group_id", "connection", "fault_id"):
        value = draw(st.sampled_from(["1", "0", "orders"]) | WILD_TEXTS)
        path = path.replace("{" + name + "}", quote(value, safe="", errors="replace"))
    known = [each.name for each in route.query]
    pairs = []
    for name in draw(st.lists(st.sampled_from([*known, "after", "stranger"]), max_size=3)):
        value = draw(SOUND[name] if name == "timeout_ms" else WILD_NUMBERS | WILD_TEXTS)
        pairs.append(f"{name}={quote(str(value), errors='replace')}")
    if route.path.endswith("/wait"):
        pairs.append("timeout_ms=20")
    method = draw(st.sampled_from([route.method] * 6 + ["GET", "POST", "PUT", "HEAD", "TRACE"]))
    return method, f"{path}?{'&'.join(pairs)}", draw(bodies(route))


class Surface:
    """A server on a loop of its own."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._serving, self.http = self._runner.run(self._start())

    async def _start(self) -> tuple[Serving, httpx.AsyncClient]:
        serving = Serving(
            ServeOptions(
                cluster=ClusterSettings(broker_ids=(1, 2)),
                listens=listeners_of((1, 2), "PLAINTEXT://127.0.0.1:0", ""),
                topics={"orders": 2},
                control=ControlOptions(),
            )
        )
        ready = await serving.start()
        return serving, httpx.AsyncClient(base_url=ready.control or "", timeout=LIMIT_S)

    def call(self, method: str, path: str, body: bytes = b"") -> httpx.Response:
        """The answer, within its limit."""
        return self._runner.run(self._call(method, path, body))

    async def _call(self, method: str, path: str, body: bytes) -> httpx.Response:
        async with asyncio.timeout(LIMIT_S):
            return await self.http.request(method, path, content=body)

    def close(self) -> None:
        """Stop the server."""
        self._runner.run(self.http.aclose())
        self._runner.run(self._serving.stop())
        self._runner.close()


@pytest.fixture
def surface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Surface]:
    """A served cluster; traces with wild names land in a directory of the test."""
    monkeypatch.chdir(tmp_path)
    made = Surface()
    yield made
    made.close()


def must_be_well(surface: Surface) -> None:
    """The server is healthy, tells everything that it has as JSON, and can begin anew."""
    for path in ("/healthz", "/v1/server", "/v1/clock", "/v1/faults", "/v1/topics", "/metrics"):
        answer = surface.call("GET", path)
        assert answer.status_code == 200, (path, answer.text)
    assert surface.call("POST", "/v1/reset").status_code == 200


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    group=st.sampled_from([{"state": "Stable"}, {"state": "Dead"}, {"members": 1}]),
    within_ms=st.integers(0, 10**9),
)
def test_move_with_a_condition_never_passes_its_bound(
    surface: Surface, group: dict[str, object], within_ms: int
) -> None:
    """The clock stands still where the condition holds, else exactly at the bound."""
    surface.call("PUT", "/v1/clock", b'{"clock":"virtual"}')
    before = surface.call("GET", "/v1/clock").json()["group_ms"]
    wanted = {"group": {"group_id": "g", **group}, "within_ms": within_ms}
    moved = surface.call("POST", "/v1/clock/run-until", json.dumps(wanted).encode()).json()
    went_ms = moved["clock"]["group_ms"] - before
    assert (moved["is_met"], went_ms) == (
        (True, 0) if "Dead" in group.values() else (False, within_ms)
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(called=st.lists(calls(), min_size=1, max_size=5))
def test_wild_call_is_answered_and_changes_no_health(
    surface: Surface, called: list[tuple[str, str, bytes]]
) -> None:
    """Every answer is one of success or of refusal, and the server is well afterwards."""
    for method, path, body in called:
        with suppress(httpx.InvalidURL):
            answer = surface.call(method, path, body)
            assert answer.status_code < 500, (method, path, body[:200], answer.text)
            if answer.status_code >= 400 and method != "HEAD":
                assert msgspec.json.decode(answer.content)["error"]
    must_be_well(surface)
