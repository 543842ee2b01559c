"""The upgrade of recorded groups, rehearsed: by hand, in agreement with its parts, as a page."""

import json
import math
from pathlib import Path

import pytest
from msgspec.structs import replace

pytest.importorskip("jinja2", reason="pages need it")

from coordinator_sim.cli.rehearse import read_told, wishes_of
from coordinator_sim.replay.run import replay_run
from coordinator_sim.replay.settings import parse_grid
from coordinator_sim.replay.upgrade_hurdles import Hurdle, Kind
from coordinator_sim.runs.deploy_costs import deploy_costs
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import load_scenario
from coordinator_sim.sim.scenario.topology import SETTLE_MS
from coordinator_sim.sim.scenario.upgrade import Deploy
from coordinator_sim.sim.scenario.variants import with_counted_work
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_reports import rehearsal_figures
from coordinator_sim_reports.rehearsal_runs import Pace
from coordinator_sim_reports.rehearsal_words import pays_text, spread_text, verdict
from coordinator_sim_reports.rehearsals import Job, rehearse
from tests.command_line import run_here

LOG = Path(__file__).resolve().parents[2] / "examples" / "broker-log" / "server.log"
ORDERS = ("--partitions", "orders=8")


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of the example's log, of a real broker."""
    trace = tmp_path_factory.mktemp("logged") / "trace"
    assert run_here("ingest", LOG, "--out", trace).returncode == 0
    return trace


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace that tells everything: three members, a deploy, the cooperative assignor."""
    folder = tmp_path_factory.mktemp("simulated")
    mine, trace = folder / "mine.json", folder / "trace"
    size = ("--topics", "2", "--partitions", "12", "--consumers", "3", "--deploys", "5m")
    words = ("--for", "6m", "--assignor", "cooperative-sticky", "--set", "session.timeout.ms=20000")
    assert run_here("shape", *size, *words, "--out", mine).returncode == 0
    assert run_here("run", mine, "--seed", "3", "--out", trace).returncode == 0
    return trace


def rehearsed(
    trace: Path,
    out: Path,
    *partitions: str,
    seeds: int = 2,
    pace: Pace = Pace(),  # noqa: B008 - frozen
) -> rehearsal_figures.Rehearsal:
    """A rehearsal as the command line asks for one."""
    wishes = wishes_of([], "uniform", pace="", down="", profile="4.4", top=5)
    told = read_told(trace, list(partitions))
    job = Job(told=told, wishes=wishes, seeds=tuple(range(seeds)), pace=pace, out=out)
    return rehearse(job, lambda _done, _all: None)


def row(deploy: Deploy, *unowned: float, **others: float) -> rehearsal_figures.DeployRow:
    """What a deploy costs in each world; other figures are the same in all of them."""
    costs = {
        name: rehearsal_figures.spread_of([others.get(name, 0.0)] * len(unowned))
        for name in rehearsal_figures.MEASURES
    }
    return rehearsal_figures.DeployRow(
        deploy=deploy, costs={**costs, "unowned_s": rehearsal_figures.spread_of(unowned)}, file="f"
    )


def balance(*rows: rehearsal_figures.DeployRow) -> dict[str, rehearsal_figures.Balance]:
    """The balance by figure."""
    return {each.measure: each for each in rehearsal_figures.balance_of(rows)}


def test_the_balance_by_hand() -> None:
    """10 and 30 more than usual, 5 and 7 saved: 20 in the mean is paid by four times 6."""
    found = balance(
        row(Deploy.TODAY, 100.0, 120.0, stopped_s=3.0),
        row(Deploy.UPGRADE, 110.0, 150.0, stopped_s=1.0, moved=5.0),
        row(Deploy.AFTERWARDS, 95.0, 113.0, moved=4.0),
    )
    unowned = found["unowned_s"]
    assert unowned.extra.values == (10.0, 30.0)
    assert unowned.saving.values == (5.0, 7.0)
    assert (unowned.extra.mean, unowned.saving.mean) == (20.0, 6.0)
    assert (unowned.pays_after, unowned.worlds_saving) == (4, 2)
    assert pays_text(unowned) == "after 4 deploys"
    assert spread_text(unowned.extra, is_signed=True) == "+20 (+10 to +30)"
    assert pays_text(found["stopped_s"]) == "with the upgrade itself"
    assert pays_text(found["moved"]) == "never: each deploy afterwards costs more"
    assert pays_text(found["reprocessed"]) == "nothing to pay or to save"


def test_what_the_worlds_do_not_agree_on_is_not_told() -> None:
    """A mean alone would say that it pays, and the sentence says how many worlds do."""
    rows = (row(Deploy.TODAY, 9.0, 9.0), row(Deploy.UPGRADE, 9.0, 12.0))
    found = balance(*rows, row(Deploy.AFTERWARDS, 10.0, 2.0))
    assert found["unowned_s"].pays_after == 1
    assert pays_text(found["unowned_s"]) == "the worlds disagree"
    assert pays_text(balance(*rows, row(Deploy.AFTERWARDS, 8.0, 2.0))["unowned_s"]) == (
        "after 1 deploy"
    )


@pytest.mark.parametrize(
    ("extra", "saving", "deploys"),
    [(0.0, 5.0, 0), (-3.0, -1.0, 0), (5.0, 5.0, 1), (5.1, 5.0, 2), (5.0, 0.0, None), (5, -1, None)],
)
def test_when_it_has_paid(extra: float, saving: float, deploys: int | None) -> None:
    """At once, after some deploys, or never."""
    assert rehearsal_figures.pays_after(extra, saving) == deploys


def test_the_history_is_what_replay_says(logged: Path, simulated: Path, tmp_path: Path) -> None:
    """Of a broker's log with partitions that are given, and of a recording that tells them."""
    for trace, given in ((logged, ("orders=8",)), (simulated, ())):
        found = rehearsed(trace, tmp_path / trace.parent.name, *given, seeds=1)
        grid = parse_grid(["group.protocol=consumer", "group.remote.assignor=uniform,range"])
        known = read_told(trace, list(given)).known
        report = replay_run(read_run(trace), grid, given=known.given).report
        for each in found.groups:
            entries = [one for one in report.what_if if one.group_id == each.group.group_id]
            wanted = {one.settings["group.remote.assignor"]: one.with_settings for one in entries}
            rows = {one.name: one.figures for one in each.history.rows}
            for name in ("uniform", "range"):
                theirs = wanted[name]
                assert theirs is not None
                assert rows[name].sharing == theirs.sharing
                assert rows[name].rebalances == theirs.rebalances
                assert rows[name].unnoticed_ms == theirs.unnoticed_ms
            before = entries[0].as_is
            assert before is not None
            assert rows["as it was"].rebalances == before.rebalances


def test_a_deploy_is_what_run_counts_of_its_file(simulated: Path, tmp_path: Path) -> None:
    """The same scenario and seed give the same figures, to the microsecond."""
    found = rehearsed(simulated, tmp_path)
    (group,) = found.groups
    assert [each.deploy for each in group.deploys] == list(Deploy)
    for each in group.deploys:
        for seed in (0, 1):
            recorder = MemoryRecorder()
            scenario = with_counted_work(load_scenario(Path(each.file)))
            run_scenario(scenario, seed=seed, recorder=recorder)
            counted = deploy_costs(recorder.events, "orders-app", SETTLE_MS * 1_000)
            assert each.costs["unowned_s"].values[seed] == counted.unowned_us / 1e6
            assert each.costs["moved"].values[seed] == counted.moved
            assert each.costs["reprocessed"].values[seed] == counted.reprocessed


def test_the_plan_of_a_trace_that_tells_everything(simulated: Path, tmp_path: Path) -> None:
    """Members, topics, assignor, timeouts and the rhythm of deploys come from the trace."""
    (group,) = rehearsed(simulated, tmp_path, seeds=1).groups
    plan = group.group.plan
    assert plan is not None
    assert plan.group.topics == {"topic-1": 6, "topic-2": 6}
    assert plan.group.assignors == ("cooperative-sticky",)
    assert plan.classic["session.timeout.ms"] == "20000"
    assert plan.classic["heartbeat.interval.ms"] == "3000"
    assert 25_000 < plan.pace_ms < 35_000
    assert 4_000 < plan.down_ms < 17_000
    assert (plan.today, plan.profile) == ("4.4", "4.4")
    bases = {fact.name: fact.basis for fact in group.group.facts}
    assert bases["assignor today"] == bases["a restart takes"] == "trace"
    assert bases["records"] == "assumed"
    assert bases["what the brokers allow"] == "unknown"


def test_runs_that_are_finished_are_kept(simulated: Path, tmp_path: Path) -> None:
    """A second rehearsal with one world more simulates that one alone; figures are the same."""
    first = rehearsed(simulated, tmp_path, seeds=1)
    second = rehearsed(simulated, tmp_path, seeds=2)
    assert (first.kept, second.kept) == (0, 4)
    before, after = first.groups[0].deploys[0], second.groups[0].deploys[0]
    assert before.costs["unowned_s"].values == after.costs["unowned_s"].values[:1]


def test_several_processes_give_the_same_figures(simulated: Path, tmp_path: Path) -> None:
    """The first world tells how long the others take; these are simulated side by side."""
    alone = rehearsed(simulated, tmp_path / "alone", seeds=3)
    pace = Pace(workers=2, patience_s=0.0)
    together = rehearsed(simulated, tmp_path / "together", seeds=3, pace=pace)
    assert together.kept == 0
    for one, other in zip(alone.groups[0].deploys, together.groups[0].deploys, strict=True):
        assert one.costs == other.costs


def test_days_are_told_of_a_long_recording(simulated: Path, tmp_path: Path) -> None:
    """Four deploys in two days that save 3 each: 10 more for the upgrade are paid by four."""
    (group,) = rehearsed(simulated, tmp_path, seeds=1).groups
    seen = replace(group.group.seen, first_us=0, last_us=2 * 86_400 * 1_000_000)
    deploys = replace(group.group.deploys, count=4)
    rows = (row(Deploy.TODAY, 100.0), row(Deploy.UPGRADE, 110.0), row(Deploy.AFTERWARDS, 97.0))
    told = replace(
        group,
        group=replace(group.group, seen=seen, deploys=deploys),
        deploys=(*rows, row(Deploy.BACK, 99.0)),
        balance=rehearsal_figures.balance_of(rows),
    )
    sentences = verdict(told)
    assert sentences[0].startswith(
        "Upgrade: each deploy afterwards saves 3 partition-seconds without an owner, so the "
        "upgrade has paid for itself after 4 of them."
    )
    assert "One world tells nothing of the spread" in sentences[0]
    assert sentences[2] == "The way back leaves 99."
    assert sentences[-1] == (
        "4 deploys in 2.0 days: +6 partition-seconds saved a day, "
        "so that it has paid after 2.0 days."
    )

    dearer = (*rows[:2], row(Deploy.AFTERWARDS, 103.0))
    lost = replace(told, balance=rehearsal_figures.balance_of(dearer))
    assert verdict(lost)[0].startswith("No gain: in time without an owner no deploy gets cheaper")

    what = "The brokers are 3.9: the consumer protocol came with 4.0."
    blocked = replace(told.group, hurdles=(Hurdle(kind=Kind.BLOCKS, what=what, fix="Upgrade."),))
    first, second, *_ = verdict(replace(told, group=blocked))
    assert first == "Blocked, because the brokers are 3.9: the consumer protocol came with 4.0."
    assert second == sentences[0]


def test_one_world_is_simulated_however_short_the_time(simulated: Path, tmp_path: Path) -> None:
    """What there was no time for is told."""
    done = run_here("rehearse", simulated, "--seeds", "4", "--within", "1ms", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 of 4 drawn worlds in the time given; run it again to go on" in done.stdout
    text = " ".join(done.stdout.split())
    assert "the time given (--within) was over before range" in text


def test_a_rehearsal_without_a_time_ends_after_a_minute(simulated: Path, tmp_path: Path) -> None:
    """A thousand worlds would take longer; those that are done have all four deploys."""
    told = rehearsed(simulated, tmp_path, seeds=1000, pace=Pace(within_s=0.5))
    assert 0 < told.seeds < told.seeds + told.seeds_left == 1000
    assert "the time given (<code>--within</code>) was over" in Path(told.page).read_text()
    assert Pace().within_s == 60


def test_the_example_from_its_log_to_the_page(logged: Path, tmp_path: Path) -> None:
    """Two groups are rehearsed, and the third is of the consumer protocol already."""
    out = tmp_path / "out"
    done = run_here("rehearse", logged, *ORDERS, "--seeds", "2", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [each["group"]["seen"]["group_id"] for each in told["groups"]] == [
        "orders-service",
        "billing",
    ]
    orders, billing = told["groups"]
    assert orders["group"]["deploys"]["count"] == 1
    assert orders["group"]["plan"]["group"]["assignors"] == ["range"]
    assert billing["group"]["plan"]["group"]["assignors"] == ["cooperative-sticky"], "follow-ups"
    assert all(each["history"]["rows"] for each in told["groups"])
    assert "uniform, a session of 6 s" in [each["name"] for each in orders["history"]["rows"]]
    assert orders["verdict"][0].startswith("No gain: ")
    page = (out / "rehearsal.html").read_text("utf-8")
    assert "http" not in page.replace("http://www.w3.org", "")
    assert page.count("<h2 id=") == 2
    for name in ("today", "upgrade", "afterwards", "back"):
        assert f"orders-service-{name}.json" in page


def test_a_verdict_tells_what_is_not_rehearsed(logged: Path, tmp_path: Path) -> None:
    """Only one of the groups has partitions that are known."""
    found = rehearsed(logged, tmp_path, "billing:orders=8", seeds=1)
    orders, billing = found.groups
    assert billing.deploys
    assert not orders.deploys
    assert verdict(orders) == [f"Not rehearsed: {orders.group.not_rehearsed}."]
    assert orders.history.not_computed
    assert "Not rehearsed" in (tmp_path / "rehearsal.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 1, "add --partitions TOPIC=N for each of them"),
        (("--group", "order-service"), 2, "did you mean orders-service"),
        (("--group", "audit"), 1, "is a consumer group already"),
        ((*ORDERS, "--assignor", "best"), 2, "--assignor best: 'best' must be one of range"),
        ((*ORDERS, "--remote-assignor", "sticky"), 2, "must be one of uniform, range"),
        ((*ORDERS, "--profile", "3.9"), 2, "the consumer protocol came with 4.0"),
        ((*ORDERS, "--down", "soon"), 2, "--down 'soon': wants a number with ms"),
    ],
)
def test_what_cannot_be_rehearsed_is_one_line(
    logged: Path, tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    """With what would do."""
    done = run_here("rehearse", logged, *words, "--out", tmp_path)
    assert done.returncode == code
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        ("connect-rolling-deploy", "a Connect cluster, which never converts"),
        ("new-rolling-deploy", "its groups (orders-app) are of a protocol with epochs already"),
    ],
)
def test_groups_of_other_kinds_are_one_line(tmp_path: Path, scenario: str, message: str) -> None:
    """They are not upgraded."""
    trace = tmp_path / "trace"
    assert run_here("run", scenario, "--out", trace).returncode == 0
    done = run_here("rehearse", trace, "--out", tmp_path / "out")
    assert (done.returncode, message in done.stderr) == (1, True), done.stderr


def test_old_brokers_are_simulated_as_they_are(tmp_path: Path) -> None:
    """A usual deploy is that of 3.9, the others need a release with the protocol."""
    log, trace = tmp_path / "old.log", tmp_path / "trace"
    words = ("--profile", "3.9", "--varied", "--broker-log", log, "--out", tmp_path / "run")
    assert run_here("run", "rolling-bounce", *words).returncode == 0
    assert run_here("ingest", log, "--out", trace).returncode == 0
    (group,) = rehearsed(trace, tmp_path / "out", "orders=12", seeds=1).groups
    plan = group.group.plan
    assert plan is not None
    assert (plan.today, plan.profile) == ("3.9", "4.4")
    assert group.group.hurdles[0].kind.value == "blocks"
    assert group.history.not_computed == ""
    assert not math.isnan(group.deploys[0].costs["unowned_s"].mean)
