"""`watch` as users start it: bad input, and a served cluster with real consumers."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from coordinator_sim.cli.watch import _Terminal
from coordinator_sim.live.watch_outlets import Webhook
from coordinator_sim.live.watching import Watching
from coordinator_sim.runs.run_directory import RunDirectoryWriter, read_run
from coordinator_sim.trace.events import Event, OffsetEntry, RunInfo, Source, TraceEvent
from tests.command_line import run_here
from tests.unit.cli.test_serve import serving
from tests.unit.ingest.runs_as_sources import read_again

confluent_kafka = pytest.importorskip("confluent_kafka")
cluster_watch = pytest.importorskip("coordinator_sim.live.cluster_watch")
ONE_PARTITION = ("--set", "offsets.topic.num.partitions=1")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--bootstrap localhost", "--bootstrap 'localhost': wants HOST:PORT"),
        ("--bootstrap 127.0.0.1:1 --for 3x", "--for '3x': wants a number"),
        ("--bootstrap 127.0.0.1:1 --metrics x:70000", "wants [HOST:]PORT with a port up to 65535"),
        ("--bootstrap 127.0.0.1:1 --webhook ftp://x", "wants a URL"),
        ("--bootstrap 127.0.0.1:1 --webhook https://hooks.example.com:port/x", "wants a URL"),
        ("--bootstrap 127.0.0.1:1 --webhook http://a..b/x", "wants a URL"),
        (f"--bootstrap 127.0.0.1:1 --webhook http://{'a' * 64}/x", "wants a URL"),
        ("--bootstrap 127.0.0.1:1", "Connection refused"),
        ("--bootstrap 127.0.0.1:1 --command-config bad.properties", 'property: "foo.bar"'),
        (
            "--bootstrap 127.0.0.1:1 --command-config latin.properties",
            "latin.properties is no text",
        ),
    ],
)
def test_bad_input_is_one_line(words: str, text: str, tmp_path: Path) -> None:
    """Nothing is left behind, and the line names the option and what it wants."""
    (tmp_path / "bad.properties").write_text("foo.bar=1\n", encoding="utf-8-sig")
    (tmp_path / "latin.properties").write_text("ssl.key.password=\xe9\n", encoding="latin-1")
    before = signal.getsignal(signal.SIGINT)

    done = run_here("watch", *words.split(), folder=tmp_path)

    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")
    assert text in done.stderr
    assert not (tmp_path / "watch").exists()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_trace_is_not_written_into_another(tmp_path: Path) -> None:
    """`--out` is a folder of numbered traces, so that a restart replaces none."""
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    done = run_here("watch", "--bootstrap", "127.0.0.1:1", "--out", tmp_path)
    assert "name a folder" in done.stderr


@contextmanager
def hook(status: int) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A webhook that answers with a status; its URL, and what it was sent."""
    posted: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", posted
        server.shutdown()
        thread.join()


def eventually(is_so: Callable[[], bool], for_s: float = 30) -> None:
    """Wait until something is so."""
    end_s = time.monotonic() + for_s
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.05)


@pytest.mark.parametrize("status", [301, 500])
def test_a_line_that_a_webhook_does_not_take_is_counted(status: int) -> None:
    """The first failure is told; what cannot be posted at all ends no thread."""
    told: list[str] = []
    with hook(status) as (url, posted):
        webhook = Webhook(url, told.append)
        for text in ("one", "two"):
            webhook.post(text)
        webhook.close()
    nowhere = Webhook("http://a..b/x", told.append)
    for text in ("one", "two"):
        nowhere.post(text)
    nowhere.close()

    assert (len(posted), webhook.failures, nowhere.failures) == (2, 2, 2)
    assert told[0] == f"HTTP {status}"
    assert len(told) == 2


def test_lines_that_wait_when_the_watch_ends_are_counted() -> None:
    """A hook that never answers: one line was sent, the others wait."""
    told: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        webhook = Webhook(url, told.append, answer_s=0.5)
        for text in ("one", "two", "three"):
            webhook.post(text)
        webhook.close()

    assert 3 <= webhook.failures <= 4
    assert len(told) == 1


class CutLog:
    """The consumer of a partition that holds offsets 500 to 1,000; at first no broker answers."""

    def __init__(self) -> None:
        self.outages = 2
        self.sought: list[int] = []

    def get_watermark_offsets(self, *_: object) -> tuple[int, int]:
        """Answer, or fail."""
        if self.outages:
            self.outages -= 1
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError._TRANSPORT)
        return 500, 1_000

    def seek(self, to: confluent_kafka.TopicPartition) -> None:
        """Go on elsewhere."""
        self.sought.append(to.offset)


@pytest.mark.parametrize(("was", "to", "gaps"), [(100, 500, 1), (1_200, 1_000, 1), (700, 700, 0)])
def test_a_watch_goes_on_where_the_log_was_cut(was: int, to: int, gaps: int) -> None:
    """An outage in between is waited for; nothing that can be read is skipped."""
    lines: list[str] = []
    audience = cluster_watch.Audience(lines.append, lines.append, lines.append, lines.clear)
    watch = cluster_watch.ClusterWatch(
        cluster_watch.WatchOptions(bootstrap="127.0.0.1:1"), Watching(), audience
    )
    watch._consumer = log = CutLog()
    watch._positions, watch._behind, watch._lost = {0: was}, {0}, {0: None}

    for _ in range(4):
        watch._find_lost()

    assert (log.sought, watch._positions, watch._lost) == ([to], {0: to}, {})
    told = [line for line in lines if isinstance(line, str)]
    text = (
        f"gap in __consumer_offsets-0: offsets {was} to {to} cannot be read: the log has 500..1000"
    )
    assert told == [text] * gaps


@pytest.mark.parametrize("from_end", [False, True])
def test_groups_are_missed_only_where_the_log_was_read(*, from_end: bool) -> None:
    """From the log's end, nothing was read yet that a group could be missing in."""
    lines: list[str] = []
    audience = cluster_watch.Audience(lines.append, lines.append, lines.append, lines.clear)
    options = cluster_watch.WatchOptions(bootstrap="127.0.0.1:1", from_end=from_end)
    cluster_watch.ClusterWatch(options, Watching(["orders"]), audience)._tell_beginning(0.1)
    assert sum("no such group" in line for line in lines) == (not from_end)


class Member:
    """A librdkafka consumer that is polled in a thread, and commits as it goes."""

    def __init__(self, bootstrap: str, group_id: str, **settings: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group_id,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 200,
                "log_level": 0,
                **settings,
            }
        )
        self._consumer.subscribe(["orders"])
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._is_over.is_set():
            self._consumer.poll(0.05)
        self._consumer.close()

    def leave(self) -> None:
        """Close the consumer."""
        self._is_over.set()
        self._thread.join()


def of_group(events: list[TraceEvent], group_id: str) -> list[TraceEvent]:
    """The events of a group, commits one by one, without where they were read."""
    bare = [replace(e, source=None, source_ref=None) for e in events if e.group_id == group_id]
    return [
        replace(event, offsets=(each,), seq=-1) if each else event
        for event in bare
        for each in (event.offsets or (None,))
    ]


def check_page(url: str) -> None:
    """The page has the groups, their members and what these own; other sites do not get it."""
    assert 'src="page.js"' in httpx.get(url).text
    assert "EventSource" in httpx.get(f"{url}page.js").text
    groups = {each["group_id"]: each for each in httpx.get(f"{url}v1/groups").json()}
    assert {name: each["member_count"] for name, each in groups.items()} == {
        "classic": 2,
        "newer": 1,
    }
    for name, count in (("classic", 2), ("newer", 1)):
        group = httpx.get(f"{url}v1/groups/{name}").json()
        assert [each["client_host"] for each in group["members"]] == ["/127.0.0.1"] * count
        owned = sorted(place for each in group["members"] for place in each["assignment"])
        assert owned == [f"orders-{number}" for number in range(4)]
    with httpx.stream("GET", f"{url}v1/events") as answer:
        first = next(line for line in answer.iter_lines() if line.startswith("data: "))
    assert '"event":"MEMBER_ADDED"' in first
    for path in ("v1/groups/none", "v1/server/x", "v2/groups", "page.py"):
        assert httpx.get(f"{url}{path}").status_code == 404
    assert httpx.get(f"{url}v1/groups", headers={"Host": "elsewhere"}).status_code == 403


def test_a_watch_that_is_killed_leaves_what_the_cluster_wrote(tmp_path: Path) -> None:
    """Real consumers come and go: lines, metrics, the hook, and the trace of the segments."""
    served = ("--port", "0", "--no-control", "--topics", "orders:4", *ONE_PARTITION)
    delay = ("--set", "group.initial.rebalance.delay.ms=0")
    out = tmp_path / "out.txt"
    with serving(*served, *delay, "--log-dir", tmp_path / "log") as ready, hook(500) as hooked:
        bootstrap, (url, posted) = ready["bootstrap"], hooked
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        for number in range(40):
            producer.produce("orders", b"x", partition=number % 4)
        producer.flush()
        first = Member(bootstrap, "classic", **{"heartbeat.interval.ms": "300"})
        words = ("--bootstrap", bootstrap, "--metrics", "0", "--webhook", url, "--out", "traces")
        words += ("--commits",)
        command = [sys.executable, "-m", "coordinator_sim", "watch", *words]
        with out.open("w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, cwd=tmp_path)
        try:
            eventually(lambda: "following" in out.read_text())
            second = Member(bootstrap, "classic", **{"heartbeat.interval.ms": "300"})
            eventually(lambda: "(1 -> 2 members)" in out.read_text())
            other = Member(bootstrap, "newer", **{"group.protocol": "consumer"})
            eventually(lambda: "newer #1  epoch " in out.read_text())
            check_page(out.read_text().partition("page: ")[2].partition("\n")[0])
            second.leave()
            other.leave()
            eventually(lambda: "(2 -> 1 member)" in out.read_text())
            eventually(lambda: len(posted) >= 3)
            text = out.read_text()
            address = text.partition("metrics: ")[2].partition("\n")[0]
            metrics = httpx.get(address).text
            time.sleep(1.5)  # A checkpoint a second.
        finally:
            process.kill()
            process.wait()
            first.leave()

    assert 'coordinator_sim_watch_group_members{group="classic"} 1' in metrics
    assert "webhook_failures_total 0" not in metrics
    assert "--webhook failed: HTTP 500" in text
    assert all(set(each) == {"text"} for each in posted)
    assert "MEMBER_JOINED" in posted[0]["text"]
    kept = list(read_run(tmp_path / "traces").events())
    read_again(tmp_path / "again", tmp_path / "log" / "__consumer_offsets-0")
    imported = list(read_run(tmp_path / "again").events())
    for group_id in ("classic", "newer"):
        own = of_group(kept, group_id)
        assert len(own) > 8
        assert own == of_group(imported, group_id)[: len(own)]


@pytest.mark.parametrize("with_commits", [False, True])
def test_commits_are_kept_where_that_is_asked(*, with_commits: bool, tmp_path: Path) -> None:
    """They would make nearly all of a trace of days."""
    terminal = _Terminal(with_commits=with_commits)
    info = RunInfo(
        trace_id="t", source=Source.OFFSETS_TOPIC, cluster_id="c", version="0", profile="watched"
    )
    told = [
        TraceEvent(event=Event.OFFSET_COMMIT, ts_us=1, offsets=(OffsetEntry("orders", 0, 7),)),
        TraceEvent(event=Event.SYNC_LEADER, ts_us=2, generation=1),
    ]
    with RunDirectoryWriter(tmp_path / "trace", info, format="jsonl") as terminal.writer:
        for each in told:
            terminal.event(replace(each, group_id="g"))
    kept = [event.event for event in read_run(tmp_path / "trace").events()]
    assert kept == [each.event for each in told[not with_commits :]]
