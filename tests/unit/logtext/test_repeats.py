"""Nothing is counted twice: copies, overlapping excerpts, two clusters in one folder."""

import gzip
import json
from pathlib import Path

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from coordinator_sim.cli.ingest import ingest
from coordinator_sim.errors import DataError
from coordinator_sim.logtext.reading.repeats import LogContents
from coordinator_sim.runs.run_directory import read_run

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "broker-log" / "server.log"
LINES = EXAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)
LOGGER = "kafka.coordinator.group.GroupCoordinator"

app = typer.Typer()
app.command()(ingest)


def run(folder: Path, *options: str) -> tuple[dict[str, object], list[tuple[object, ...]]]:
    """The summary of an import of a folder, and its events without their files."""
    out = folder.parent / f"{folder.name}-trace"
    result = CliRunner().invoke(app, [str(folder), "--out", str(out), "--json", *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return json.loads(result.stdout), told(out)


def told(trace: Path) -> list[tuple[object, ...]]:
    """What an import holds, but where it is from."""
    return [
        (event.event, event.ts_us, event.group_id, event.incarnation, event.generation)
        for event in read_run(trace).events()
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, list[tuple[object, ...]]]:
    """The example alone: its total, and its events."""
    folder = tmp_path_factory.mktemp("whole") / "logs"
    folder.mkdir()
    (folder / "server.log").write_text("".join(LINES))
    summary, events = run(folder)
    return summary["by_event"], events


def test_copies_under_other_names_and_compressed_count_once(tmp_path: Path, whole: object) -> None:
    """A copy is recognised by what it holds, counted once and named."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_text("".join(LINES))
    (folder / "b.log").write_text("".join(LINES))
    with gzip.open(folder / "server.log.gz", "wt") as file:
        file.writelines(LINES)
    summary, events = run(folder)
    assert (summary["by_event"], events) == whole
    copies = [file["copy_of"] for file in summary["files"]]  # type: ignore[attr-defined]
    assert copies == [None, str(folder / "a.log"), str(folder / "a.log")]
    shown = CliRunner().invoke(app, [str(folder), "--out", str(tmp_path / "out")]).stdout
    assert f"{folder / 'b.log'}: a copy of {folder / 'a.log'}; counted once." in shown


@settings(max_examples=12, deadline=None)
@given(cuts=st.lists(st.integers(0, len(LINES)), min_size=2, max_size=2).map(sorted))
def test_excerpt_adds_nothing_to_the_log_it_is_of(
    tmp_path_factory: pytest.TempPathFactory,
    whole: tuple[object, list[tuple[object, ...]]],
    cuts: list[int],
) -> None:
    """Any stretch of a log beside the log gives the events of the log."""
    folder = tmp_path_factory.mktemp("excerpt") / "logs"
    folder.mkdir()
    excerpt = LINES[cuts[0] : cuts[1]]
    if sum("GroupCoordinator" in line for line in excerpt) < 3:
        return
    (folder / "a-excerpt.log").write_text("".join(excerpt))
    (folder / "server.log").write_text("".join(LINES))
    assert run(folder)[1] == whole[1]


def test_excerpts_that_overlap_make_one_log(
    tmp_path: Path, whole: tuple[object, list[tuple[object, ...]]]
) -> None:
    """The lines that both hold count once, and the summary names them."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "first.log").write_text("".join(LINES[:220]))
    (folder / "second.log").write_text("".join(LINES[150:]))
    summary, events = run(folder)
    assert events == whole[1]
    repeated = summary["total"]["repeated"]  # type: ignore[index]
    assert repeated > 10
    shown = CliRunner().invoke(app, [str(folder), "--out", str(tmp_path / "out")]).stdout
    assert f"second.log: {repeated} events in other logs, too; counted once." in shown


def test_rotated_parts_are_one_log(
    tmp_path: Path, whole: tuple[object, list[tuple[object, ...]]]
) -> None:
    """Parts that share no line are put together as they are."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "server.log.2").write_text("".join(LINES[:100]))
    (folder / "server.log.1").write_text("".join(LINES[100:200]))
    (folder / "server.log").write_text("".join(LINES[200:]))
    summary, events = run(folder)
    assert events == whole[1]
    assert summary["total"]["repeated"] == 0  # type: ignore[index]


def line(second: int, message: str) -> str:
    """A coordinator's line at a second after noon."""
    return f"[2024-05-06 12:00:{second:02},250] INFO [GroupCoordinator 1]: {message} ({LOGGER})\n"


def story(group: str, first: int, generation: int, step: int) -> str:
    """Six rebalances of a group, `step` seconds apart."""
    return "".join(
        line(at, f"Preparing to rebalance group {group} with old generation {number} (x)")
        + line(at, f"Stabilized group {group} generation {number + 1} (x)")
        + line(at, f"Assignment received from leader for group {group} for generation {number + 1}")
        for number, at in enumerate(range(first, first + 6 * step, step), generation)
    )


def test_line_that_one_log_has_twice_is_two_lines(tmp_path: Path) -> None:
    """Only what another log has, too, is a repetition."""
    folder = tmp_path / "logs"
    folder.mkdir()
    text = story("shop", 1, 4, 2)
    twice = line(30, "Member a-1 in group shop has failed, removing it from the group") * 2
    (folder / "a.log").write_text(text + twice)
    (folder / "b.log").write_text(
        text + twice + line(40, "Group shop with generation 10 is now empty")
    )
    summary, _ = run(folder)
    assert summary["by_event"]["MEMBER_FAILED"] == 2  # type: ignore[index]


def test_two_clusters_with_one_group_name_are_refused_with_the_way_out(tmp_path: Path) -> None:
    """Each log goes on from its own generation: no coordinator does that."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "east.log").write_text(story("shop", 1, 4, 4))
    (folder / "west.log").write_text(story("shop", 3, 845, 4))
    with pytest.raises(DataError, match=r"group 'shop'.*two clusters.*--cluster NAME"):
        run(folder)
    assert not (tmp_path / "logs-trace" / "run.json").exists()


def test_group_that_moves_between_brokers_is_one_group(tmp_path: Path) -> None:
    """A coordinator that takes a group over goes on from the generation of the one before."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "broker-1.log").write_text(story("shop", 1, 4, 1) + story("shop", 20, 16, 1))
    (folder / "broker-2.log").write_text(story("shop", 10, 10, 1))
    _, events = run(folder)
    assert len(events) == 54


def test_what_is_remembered_of_logs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a share of a large log's blocks is kept, and an overlap is found all the same."""
    monkeypatch.setattr("coordinator_sim.logtext.reading.repeats._MOST_BLOCKS", 500)
    lines = [f"[GroupCoordinator 1]: line {number}" for number in range(20_000)]
    contents = LogContents()
    contents.add("a", lines[:15_000])
    contents.add("b", lines[5_000:])
    assert contents.overlaps == {"a": "a", "b": "a"}
    assert len(contents._blocks) <= 500


@pytest.mark.parametrize(
    "excerpt",
    [
        [text for text in LINES if "Preparing to rebalance" in text],
        [f"kafka-1  | {text}" for text in LINES],
        [f"\x1b[32m{text.rstrip()}\x1b[0m\n" for text in LINES],
        LINES[-1:],
    ],
    ids=["lines of one kind", "collector's prefix", "colours", "one line"],
)
def test_what_a_broker_said_counts_once_in_whatever_form(
    tmp_path: Path, whole: tuple[object, list[tuple[object, ...]]], excerpt: list[str]
) -> None:
    """A broker says one thing of a group at one instant: neither neighbours nor layout matter."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_text("".join(LINES))
    (folder / "b.log").write_text("".join(excerpt))
    assert run(folder)[1] == whole[1]


def test_logs_of_two_days_in_a_layout_with_the_time_above_are_not_copies(tmp_path: Path) -> None:
    """Equal messages under other times are other events."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for day in ("21", "22"):
        told = (
            f"2026-11-{day} 08:16:0{second},000\n[GroupCoordinator 1]: Preparing to rebalance "
            f"group shop with old generation {second} (x)\n"
            for second in range(5)
        )
        (folder / f"{day}.log").write_text("".join(told))
    summary, events = run(folder)
    assert len(events) == 10
    assert [file["copy_of"] for file in summary["files"]] == [None, None]  # type: ignore[attr-defined]


def test_clients_of_one_name_that_say_the_same_in_one_second_are_two(tmp_path: Path) -> None:
    """Replicas share their client id; whole seconds do not tell their lines apart."""
    folder = tmp_path / "logs"
    folder.mkdir()
    events_of_one = 4
    for pod in "12":
        member = f"c-{pod * 8}-1111-1111-1111-111111111111"
        generation = f"generationId=5, memberId='{member}', protocol='range'"
        said = (
            "Request joining group due to: group is already rebalancing",
            "Revoke previously assigned partitions orders-0",
            "(Re-)joining group",
            f"Successfully joined group with generation Generation{{{generation}}}",
        )
        prefix = "2024-05-06 12:00:01 INFO [Consumer clientId=c, groupId=shop] "
        logger = " (org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)\n"
        (folder / f"pod-{pod}.log").write_text("".join(prefix + text + logger for text in said))
    summary, events = run(folder)
    assert summary["total"]["repeated"] == 0  # type: ignore[index]
    assert len(events) == 2 * events_of_one


@pytest.mark.parametrize("cut", [4, 10, 13])
def test_rotation_within_one_second_keeps_the_order_of_lines(tmp_path: Path, cut: int) -> None:
    """The newer part has the name that sorts first, and begins at the time the older ends at."""
    lines = story("shop", 1, 4, 5).splitlines(keepends=True)
    lines = [text.replace(",250]", "]") for text in lines]
    traces = []
    for name, parts in (
        ("one", {"server.log": lines}),
        ("two", {"server.log": lines[cut:], "server.log.1": lines[:cut]}),
    ):
        folder = tmp_path / name
        folder.mkdir()
        for file, part in parts.items():
            (folder / file).write_text("".join(part))
        traces.append(run(folder)[1])
    assert traces[0] == traces[1]


def test_parts_that_meet_in_a_repeated_hour_are_refused_and_joined_they_are_read(
    tmp_path: Path,
) -> None:
    """A file that begins in that hour does not tell which of the two it is."""
    stamps = [f"{clock},250" for clock in ("01:30:01", "02:20:01", "02:40:01", "02:10:01")]
    stamps += [f"{clock},250" for clock in ("02:30:01", "02:50:01", "03:10:01")]
    lines = [
        text.replace("2024-05-06 12:00:00,250", f"2024-10-27 {stamp}")
        for generation, stamp in enumerate(stamps, 4)
        for text in story("shop", 0, generation, 1).splitlines(keepends=True)[:3]
    ]
    for name, parts in (("parts", (lines[9:], lines[:9])), ("joined", (lines,))):
        folder = tmp_path / name
        folder.mkdir()
        for file, part in zip(("server.log", "server.log.1"), parts, strict=False):
            (folder / file).write_text("".join(part))
    with pytest.raises(DataError, match="summer time ends, must be joined to one file first"):
        run(tmp_path / "parts", "--tz", "Europe/Berlin")
    times = [event[1] for event in run(tmp_path / "joined", "--tz", "Europe/Berlin")[1]]
    assert times == sorted(times)
    assert times[-1] - times[0] == (2 * 3600 + 40 * 60) * 1_000_000  # type: ignore[operator]
