"""Windows of time on the command line: what is typed, what it means, what is shown of a trace."""

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.cli.window import WindowOptions, resolved
from coordinator_sim.replay.findings import Finding, newest_first
from coordinator_sim.trace.window import ALWAYS
from tests.command_line import run_here

LOG = Path(__file__).resolve().parents[3] / "examples" / "broker-log" / "server.log"
END = datetime(2026, 11, 29, 7, 30, tzinfo=UTC)
END_US = int(END.timestamp()) * 1_000_000
MINUTE_US = 60_000_000


def ends_of(asked: WindowOptions, zone: str = "UTC") -> list[str]:
    """Both ends of a window, as dates; an end that is not bounded is empty."""
    window = resolved(asked, END_US, ZoneInfo(zone))
    bounds = ((window.from_us, ALWAYS.from_us), (window.until_us, ALWAYS.until_us))
    return [
        "" if at_us == open_us else f"{datetime.fromtimestamp(at_us / 1e6, UTC):%d %H:%M}"
        for at_us, open_us in bounds
    ]


@pytest.mark.parametrize(
    ("asked", "ends"),
    [
        (WindowOptions(since="2026-11-28T22:00"), ["28 22:00", ""]),
        (WindowOptions(since="2026-11-28 22:00:00.000"), ["28 22:00", ""]),
        (WindowOptions(since="2026-11-28T22:00+01:00"), ["28 21:00", ""]),
        (WindowOptions(since="2026-11-28T22:00Z"), ["28 22:00", ""]),
        (WindowOptions(since="2026-11-28", until="2026-11-29"), ["28 00:00", "29 00:00"]),
        (WindowOptions(since="22:00"), ["28 22:00", ""]),
        (WindowOptions(since="7:00"), ["29 07:00", ""]),
        (WindowOptions(since="7:00:30.5"), ["29 07:00", ""]),
        (WindowOptions(since="22:00", until="06:00"), ["28 22:00", "29 06:00"]),
        (WindowOptions(since="07:00", until="06:00"), ["28 07:00", "29 06:00"]),
        (WindowOptions(since="07:00", until="07:00"), ["28 07:00", "29 07:00"]),
        (WindowOptions(since="2d", until="12h"), ["27 07:30", "28 19:30"]),
        (WindowOptions(last="12h"), ["28 19:30", ""]),
        (WindowOptions(last="90m"), ["29 06:00", ""]),
        (WindowOptions(around="03:12"), ["29 02:42", "29 03:42"]),
        (WindowOptions(around="03:12+-10m"), ["29 03:02", "29 03:22"]),
        (WindowOptions(around="03:12 ± 10m"), ["29 03:02", "29 03:22"]),
        (WindowOptions(around="2026-11-28T03:12 +/- 1h"), ["28 02:12", "28 04:12"]),
        (WindowOptions(around="07:40"), ["29 07:10", "29 08:10"]),
        (WindowOptions(around="08:40"), ["28 08:10", "28 09:10"]),
    ],
)
def test_what_is_typed_is_counted_from_the_end_of_the_trace(
    asked: WindowOptions, ends: list[str]
) -> None:
    """The trace ends at 07:30 of the 29th; no clock is asked what time it is."""
    assert ends_of(asked) == ends


def test_instants_without_a_zone_are_of_the_zone_of_the_import() -> None:
    """A time of day is the last one there, and a date its midnight there."""
    assert ends_of(WindowOptions(since="22:00"), "Asia/Tokyo") == ["28 13:00", ""]
    assert ends_of(WindowOptions(since="2026-11-29"), "Asia/Tokyo") == ["28 15:00", ""]
    assert ends_of(WindowOptions(since="2026-11-29T06:00Z"), "Asia/Tokyo") == ["29 06:00", ""]


@given(minutes=st.integers(0, 1439), width=st.integers(1, 600))
def test_a_time_of_day_is_never_a_day_away_from_the_end(minutes: int, width: int) -> None:
    """`--since` is at or before the end, `--around` reaches it; both by less than a day."""
    text = f"{minutes // 60:02}:{minutes % 60:02}"
    since = resolved(WindowOptions(since=text), END_US)
    assert 0 <= END_US - since.from_us < 1440 * MINUTE_US
    around = resolved(WindowOptions(around=f"{text}+-{width}m"), END_US)
    assert around.until_us - around.from_us == 2 * width * MINUTE_US
    assert 0 <= END_US - around.from_us < 1440 * MINUTE_US


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's log of two minutes of a morning."""
    path = tmp_path_factory.mktemp("window") / "trace"
    assert run_here("ingest", LOG, "--out", path).returncode == 0
    return path


OUTSIDE = (
    "--since 2026-11-20 --until 2026-11-21: nothing lies there, the trace lasts from "
    "2026-11-21 08:15:43.085 to 2026-11-21 08:17:32.382 (UTC); choose a time between"
)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--since", "noon"), "--since 'noon': wants an instant as 2026-11-28T22:00 or 2026-11-28"),
        (("--until", "25:00"), "--until '25:00': wants an instant"),
        (("--since", "2026-13-01"), "--since '2026-13-01': wants an instant"),
        (("--last", "12"), "--last '12': wants a number with ms, s, m, h, d, w or y"),
        (("--last", "0h"), "--last 0h: must be at least 1ms"),
        (("--around", "08:16+-soon"), "--around, after +-, 'soon': wants a number with"),
        (("--last", "1h", "--since", "2h"), "--since and --last exclude each other: leave one out"),
        (("--around", "08:16", "--until", "2h"), "--until and --around exclude each other"),
        (
            ("--since", "1m", "--until", "2m"),
            "--since 1m (2026-11-21 08:16:32.382) must be before --until 2m (2026-11-21 08:15:3",
        ),
        (
            ("--since", "2026-11-20", "--until", "2026-11-21"),
            OUTSIDE,
        ),
    ],
)
def test_a_window_that_cannot_be_is_refused_in_one_line(
    trace: Path, words: tuple[str, ...], complaint: str
) -> None:
    """The value, the bound and the fix."""
    done = run_here("explain", trace, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {complaint}")
    assert done.stderr.count("\n") == 1


def test_commands_show_their_window_and_keep_it_in_the_next_command(trace: Path) -> None:
    """The list of groups, the story of one, findings and a replay, of 20 seconds around 08:16."""
    window = ("--around", "08:16+-10s")
    shown = "Shown is what began from 2026-11-21 08:15:50.000 to 2026-11-21 08:16:10.000."
    groups = run_here("explain", trace, *window).stdout
    assert groups.startswith(shown)
    assert groups.endswith(f"explain {trace} orders-service --around 08:16+-10s\n")
    story = run_here("explain", trace, "orders-service", *window).stdout
    assert "\n#2  2026-11-21 08:15:51.600" in story
    assert "comes from: #5, where its process went" in story
    assert story.endswith("are one); one more had begun before with #1\n")
    found = run_here("findings", trace, *window).stdout
    assert "A deploy restarted members: 4 rebalances, 1.5 s of rebalancing." in found
    assert "   when: from 2026-11-21 08:15:51.600 to 2026-11-21 08:16:09.064" in found
    assert "saves: 1.408 of 1.453 seconds rebalancing, replayed" in found
    assert "--around 08:16+-10s --group orders-service --set group.instance.id=stable" in found
    replayed = run_here("replay", trace, "--group", "billing", *window)
    assert (replayed.returncode, replayed.stderr.count("rebalances in this window")) == (1, 1)


def test_findings_come_newest_first_on_request(trace: Path) -> None:
    """By their last occurrence; the costliest first is the default."""
    usual, newest = (
        json.loads(run_here("findings", trace, "--json", *words).stdout)["findings"]
        for words in ((), ("--sort", "newest"))
    )
    assert [row["last_us"] for row in newest] == sorted(
        (row["last_us"] for row in usual), reverse=True
    )
    assert [row["cost_s"] for row in usual] == sorted(
        (row["cost_s"] for row in usual), reverse=True
    )


def test_findings_of_one_time_or_none_keep_the_order_of_their_costs() -> None:
    """The costliest of them stays first."""
    worst = [
        Finding(group_id="g", kind=kind, rebalances=1, cost_s=1, what="", change="", confidence=1)
        for kind in ("none-1", "none-2", "at-1", "at-2")
    ]
    worst[2:] = [replace(each, last_us=7) for each in worst[2:]]
    assert [each.kind for each in newest_first(worst)] == ["at-1", "at-2", "none-1", "none-2"]


def test_an_import_keeps_its_window_and_every_event(tmp_path: Path) -> None:
    """Commands without a window take the import's, in its zone; another one goes before it."""
    out = tmp_path / "night"
    done = run_here("ingest", LOG, "--tz", "Europe/Berlin", "--since", "08:17", "--out", out)
    shown = "Shown is what began from 2026-11-21 07:17:00.000 to 2026-11-21 07:17:32.382."
    kept = "94 events lie outside; they are kept, as they tell the state of groups."
    assert done.stdout.endswith(f"127 events written to {out}\n{shown} {kept}\n")
    late, whole = (
        json.loads(run_here("explain", out, "orders-service", "--json", *words).stdout)
        for words in ((), ("--since", "2026-11-21"))
    )
    assert [row["number"] for row in late["rebalances"]] == [
        row["number"]
        for row in whole["rebalances"]
        if row["start_ms"] * 1000 >= late["window"]["from_us"]
    ]
    assert 0 < len(late["rebalances"]) < len(whole["rebalances"]) == 17
    refused = run_here("ingest", LOG, "--append-to", out, "--last", "1h")
    assert "--last cannot be given with --append-to" in refused.stderr


def test_lint_looks_at_a_window_of_a_trace(trace: Path, tmp_path: Path) -> None:
    """A window is refused where no trace is named: `lint` reads settings."""
    settings = tmp_path / "client.properties"
    settings.write_text("group.id=billing\n", encoding="utf-8")
    done = run_here("lint", settings, "--last", "12h")
    assert done.stderr == "error: --last 12h: of which trace? add --trace TRACE\n"
    whole, early = (
        run_here("lint", settings, "--trace", trace, *words).stdout
        for words in ((), ("--until", "08:16:45"))
    )
    assert "trace: billing: 7 rebalances came within minutes of each other" in whole
    assert "trace: billing: 3 rebalances came within minutes of each other" in early
