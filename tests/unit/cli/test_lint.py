"""`lint`: files in, lines out."""

import json
from itertools import product
from math import comb, prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.cli.poll_times import Histogram, exceeds
from tests.command_line import run_here

QUIET = """\
group.id=g
group.instance.id=a
session.timeout.ms=60000
partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor
"""


def written(tmp_path: Path, text: str, name: str = "client.properties") -> str:
    """The path of a file with this text."""
    path = tmp_path / name
    path.write_text(text)
    return str(path)


@settings(max_examples=20)
@given(
    times=st.dictionaries(st.integers(0, 1_000), st.integers(1, 9), min_size=1, max_size=4),
    records=st.integers(1, 5),
    limit_ms=st.integers(1, 4_000),
)
def test_probability_is_that_of_all_combinations(
    times: dict[int, int], records: int, limit_ms: int
) -> None:
    """Every sequence of records counts; sums within some cells of the limit may go either way."""
    total = sum(times.values())

    def beyond(bound_ms: float) -> float:
        return sum(
            prod(times[time_ms] / total for time_ms in each)
            for each in product(times, repeat=records)
            if sum(each) > bound_ms
        )

    histogram = Histogram(tuple(map(float, times)), tuple(map(float, times.values())))
    found = exceeds(histogram, records, limit_ms)
    near_ms = 2 * (records + 1) * records * max(times) / (1 << 18)
    assert beyond(limit_ms + near_ms) - 1e-9 <= found <= beyond(limit_ms - near_ms) + 1e-9


def test_slow_records_are_found_before_they_remove_a_member(tmp_path: Path) -> None:
    """One record in a hundred takes a minute: five of them in a poll outlast five minutes."""
    file = written(tmp_path, QUIET)
    times = written(tmp_path, "# ms count\n10 99\n60000, 1\n", "times.txt")
    done = run_here("lint", file, "--processing-histogram", times, "--json")
    (advice,) = json.loads(done.stdout)["advice"]
    assert (done.returncode, advice["setting"]) == (1, "max.poll.interval.ms")
    rare = sum(comb(500, slow) * 0.01**slow * 0.99 ** (500 - slow) for slow in range(5))
    assert f"outlasts it with probability {1 - rare:.3g}:" in advice["what"]
    assert advice["change"].startswith("set max.poll.records=")


def test_quiet_settings_are_found_quiet(tmp_path: Path) -> None:
    """Exit code 0, also with records that are quick."""
    file = written(tmp_path, QUIET)
    times = written(tmp_path, "10 99\n", "times.txt")
    done = run_here("lint", file, "--processing-histogram", times)
    assert (done.returncode, done.stdout) == (0, f"{file}: nothing to change\n")


@pytest.mark.parametrize(
    ("text", "histogram", "problem"),
    [
        ("config.storage.topic=c\nconsumer.max.poll.records=0\n", "1 1\n", "from 1 to 100000"),
        (QUIET, "1\n", "times.txt:1: '1': wants MILLISECONDS COUNT"),
        (QUIET, "-1 1\n", "wants MILLISECONDS COUNT"),
        (QUIET, "1 0\n", "no record is counted"),
        (QUIET, "", "no record is counted"),
        (QUIET + "max.poll.records=100001\n", "1 1\n", "must be from 1 to 100000"),
    ],
)
def test_what_is_neither_is_one_line(
    tmp_path: Path, text: str, histogram: str, problem: str
) -> None:
    """File, value and what would do."""
    times = written(tmp_path, histogram, "times.txt")
    done = run_here("lint", written(tmp_path, text), "--processing-histogram", times)
    assert done.returncode in {1, 2}
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1


WORKER = """\
bootstrap.servers=broker-1:9092
group.id=connect
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
config.storage.topic=configs
offset.storage.topic=offsets
status.storage.topic=status
scheduled.rebalance.max.delay.ms=90000
"""


def test_a_workers_file_is_told_by_its_names(tmp_path: Path) -> None:
    """Sink tasks poll by the settings behind consumer., which the histogram is held against."""
    file = written(tmp_path, WORKER, "connect-distributed.properties")
    times = written(tmp_path, "10 99\n60000 1\n", "times.txt")
    quiet = run_here("lint", file)
    assert (quiet.returncode, quiet.stdout) == (0, f"{file}: nothing to change\n")
    done = run_here("lint", file, "--processing-histogram", times, "--json")
    (advice,) = json.loads(done.stdout)["advice"]
    assert advice["setting"] == "consumer.max.poll.interval.ms"
    assert advice["change"].startswith("set consumer.max.poll.records=")


def test_kind_says_whose_a_file_is(tmp_path: Path) -> None:
    """A file without any name that only a worker has."""
    file = written(tmp_path, "group.id=connect\nmax.poll.records=9\n")
    done = run_here("lint", file, "--kind", "connect", "--json")
    found = {each["setting"]: each for each in json.loads(done.stdout)["advice"]}
    assert found["config.storage.topic"]["weight"] == "error"
    assert "consumer.max.poll.records" in found["max.poll.records"]["change"]


def test_a_trace_tells_of_the_workers_group(tmp_path: Path) -> None:
    """What a simulated Connect cluster's trace says stands beside what the file says."""
    assert run_here("run", "connect-worker-lost", "--out", str(tmp_path / "t")).returncode == 0
    file = written(tmp_path, WORKER.replace("group.id=connect\n", "group.id=connect-cluster\n"))
    done = run_here("lint", file, "--trace", str(tmp_path / "t"))
    assert done.returncode == 1, done.stderr
    assert "\ntrace: " in "\n" + done.stdout


# -- settings that were printed -------------------------------------------------------------


def printed(of: str, at: str, **settings: str) -> str:
    """A block of a log; names have two underscores for a dot."""
    named = sorted((name.replace("__", "."), value) for name, value in settings.items())
    lines = "".join(f"\t{name} = {value}\n" for name, value in named)
    return f"[2026-03-02 {at}] INFO {of}Config values: \n{lines} (org.apache.kafka.{of}Config)\n"


STRATEGY = "partition__assignment__strategy"
COOPERATIVE = {STRATEGY: "[class org.apache.kafka.clients.consumer.CooperativeStickyAssignor]"}
CONSUMER = {
    "group__id": "orders",
    "group__instance__id": "a",
    "group__protocol": "classic",
    "heartbeat__interval__ms": "3000",
    "session__timeout__ms": "60000",
    **COOPERATIVE,
}
"""A consumer with which nothing is wrong."""
WORKER_PRINTED = {
    "connect__protocol": "sessioned",
    "group__id": "connect",
    "heartbeat__interval__ms": "3000",
    "rebalance__timeout__ms": "60000",
    "scheduled__rebalance__max__delay__ms": "90000",
    "session__timeout__ms": "10000",
    "worker__unsync__backoff__ms": "300000",
}
STREAMS = {
    **CONSUMER,
    "group__id": "totals",
    "client__id": "totals-1-StreamThread-1-consumer",
    STRATEGY: "[class org.apache.kafka.streams.processor.internals.StreamsPartitionAssignor]",
}


def trace_of(tmp_path: Path, *logs: str) -> str:
    """The trace of some logs."""
    files = [written(tmp_path, text, f"{number}.log") for number, text in enumerate(logs)]
    out = str(tmp_path / "t")
    done = run_here("ingest", *files, "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def judged(trace: str, *more: str) -> list[tuple[str, list[str], str, str]]:
    """Group, clients, setting and value of what is wrong in a trace's printed settings."""
    done = run_here("lint", "--trace", trace, "--json", *more)
    found = json.loads(done.stdout)["printed"]
    assert done.returncode == bool(found), done.stderr
    return [
        (each["group_id"], each["clients"], each["advice"]["setting"], each["advice"]["value"])
        for each in found
    ]


@pytest.mark.parametrize(
    ("of", "settings"),
    [
        ("Consumer", CONSUMER),
        ("Distributed", WORKER_PRINTED),
        ("Consumer", CONSUMER | {"group__protocol": "consumer", "session__timeout__ms": "1"}),
    ],
    ids=["consumer", "worker", "consumer protocol"],
)
def test_printed_defaults_are_nothing_to_change(
    tmp_path: Path, of: str, settings: dict[str, str]
) -> None:
    """What a client prints but did not choose or does not use is no fault of its settings."""
    trace = trace_of(tmp_path, printed(of, "10:00:00,000", **settings))
    done = run_here("lint", "--trace", trace)
    assert (done.returncode, done.stdout) == (0, f"{trace}: nothing to change\n")


def test_clients_that_printed_one_value_are_named_together(tmp_path: Path) -> None:
    """The setting, its value, who printed it, and the bound."""
    brief = CONSUMER | {"session__timeout__ms": "8000", "group__instance__id": "null"}
    logs = [
        printed("Consumer", f"10:00:0{second},000", client__id=name, **brief)
        for second, name in enumerate("abc")
    ]
    trace = trace_of(tmp_path, *logs, printed("Consumer", "10:00:09,000", **CONSUMER))
    assert judged(trace) == [
        ("orders", ["a", "b", "c"], "group.instance.id", "(not set)"),
        ("orders", ["a", "b", "c"], "heartbeat.interval.ms", "3000"),
        ("orders", ["a", "b", "c"], "session.timeout.ms", "8000"),
    ]
    lines = run_here("lint", "--trace", trace).stdout.splitlines()
    assert lines[1].startswith(
        "orders: warning: heartbeat.interval.ms=3000 (printed by a, b, c): losing 2 in a row fails "
        "the member, at session.timeout.ms=8000; set at most 2666"
    )


def test_bounds_are_those_that_the_brokers_printed(tmp_path: Path) -> None:
    """A session timeout that Kafka's defaults would take is refused by these brokers."""
    broker = {"node__id": "1", "group__max__session__timeout__ms": "30000"}
    log = printed("Consumer", "10:00:00,000", **CONSUMER)
    trace = trace_of(tmp_path, log, printed("Kafka", "09:00:00,000", **broker))
    assert judged(trace) == [("orders", ["a"], "session.timeout.ms", "60000")]
    assert "set 6000 to 30000, or change" in run_here("lint", "--trace", trace).stdout


def test_the_settings_in_force_in_a_window_are_judged(tmp_path: Path) -> None:
    """The last start before it counts, and later ones do not."""
    times = {"09:00:00,000": "7000", "10:00:00,000": "8000", "11:00:00,000": "9000"}
    log = "".join(
        printed("Consumer", at, **(CONSUMER | {"session__timeout__ms": session}))
        for at, session in times.items()
    )
    trace = trace_of(tmp_path, log)

    def sessions(*options: str) -> list[str]:
        found = judged(trace, *options)
        return [value for *_, name, value in found if name == "session.timeout.ms"]

    assert sessions() == ["7000", "8000", "9000"]
    assert sessions("--since", "10:30", "--until", "10:40") == ["8000"]
    assert sessions("--since", "10:30") == ["8000", "9000"]
    assert sessions("--until", "09:30") == ["7000"]


def test_a_workers_consumers_of_its_own_topics_are_no_members(tmp_path: Path) -> None:
    """Their group.id is that of the cluster; the worker's own settings count."""
    own = CONSUMER | {"group__id": "connect", "session__timeout__ms": "7000"}
    worker = WORKER_PRINTED | {"heartbeat__interval__ms": "4000"}
    log = printed("Distributed", "10:00:00,000", **worker)
    trace = trace_of(tmp_path, log + printed("Consumer", "10:00:01,000", **own))
    assert [each[2:] for each in judged(trace)] == [("heartbeat.interval.ms", "4000")]


def test_stream_threads_are_judged_as_such(tmp_path: Path) -> None:
    """Streams brings its own assignor, and its members do not leave when they stop."""
    app = printed("Streams", "10:00:00,000", application__id="totals", num__stream__threads="1")
    settings = STREAMS | {"group__instance__id": "null"}
    trace = trace_of(tmp_path, app + printed("Consumer", "10:00:01,000", **settings))
    assert [each[2:] for each in judged(trace)] == [("group.instance.id", "(not set)")]
    assert "as Kafka Streams does not leave" in run_here("lint", "--trace", trace).stdout


@pytest.mark.parametrize(
    ("protocols", "value"), [(("classic", "consumer"), []), (("consumer", "classic"), ["5000"])]
)
def test_each_start_is_of_the_protocol_that_it_printed(
    tmp_path: Path, protocols: tuple[str, str], value: list[str]
) -> None:
    """A group that restarts with the other protocol is judged by each start's own."""
    sessions = dict(zip(protocols, ("60000", "5000"), strict=True))
    log = "".join(
        printed(
            "Consumer",
            f"1{hour}:00:00,000",
            **(CONSUMER | {"group__protocol": each, "session__timeout__ms": session}),
        )
        for hour, (each, session) in enumerate(sessions.items())
    )
    found = judged(trace_of(tmp_path, log))
    assert [each[3] for each in found if each[2] == "session.timeout.ms"] == value
    assert {each[2] for each in found} <= {"session.timeout.ms", "heartbeat.interval.ms"}


def test_stream_threads_are_of_the_protocol_of_their_start(tmp_path: Path) -> None:
    """The consumers of an application do not print group.protocol=streams themselves."""
    wrong = STREAMS | {"session__timeout__ms": "5000"}
    log = "".join(
        printed("Streams", f"1{hour}:00:00,000", application__id="totals", group__protocol=protocol)
        + printed("Consumer", f"1{hour}:00:01,000", **(wrong | {"heartbeat__interval__ms": beat}))
        for hour, (protocol, beat) in enumerate((("classic", "4000"), ("streams", "4100")))
    )
    found = [each[2:] for each in judged(trace_of(tmp_path, log))]
    assert ("heartbeat.interval.ms", "4000") in found
    assert ("heartbeat.interval.ms", "4100") not in found


def test_a_trace_without_printed_settings_is_one_line(tmp_path: Path) -> None:
    """It names what to ingest; a file and a trace, or nothing at all, is refused in a line."""
    assert run_here("run", "member-crash", "--out", str(tmp_path / "t")).returncode == 0
    done = run_here("lint", "--trace", str(tmp_path / "t"), "--until", "1970-01-01T00:00:00.001")
    (line,) = done.stdout.splitlines()
    assert (done.returncode, "has no printed settings: clients and workers" in line) == (0, True)
    for words in ([], ["--trace", str(tmp_path / "t"), "--kind", "connect"]):
        refused = run_here("lint", *words)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)


# -- files in other forms ------------------------------------------------------------------

SPRING = """\
spring.application.name=orders
spring.kafka.bootstrap-servers=b:9092
spring.kafka.properties.schema.registry.url=http://r
spring.kafka.consumer.group-id=${GROUP:g}
spring.kafka.consumer.group-instance-id=${HOSTNAME}
spring.kafka.consumer.heartbeatInterval=5s
spring.kafka.consumer.isolation-level=read-committed
spring.kafka.consumer.properties.session.timeout.ms=6000
spring.kafka.consumer.properties.partition.assignment.strategy=cooperative-sticky
spring.kafka.listener.ack-mode=manual
"""
YAML = """\
spring:
  kafka:
    consumer:
      group-id: g
      heartbeat-interval: PT5S
      enable-auto-commit: true
      properties:
        session.timeout.ms: 6000
        partition.assignment.strategy: cooperative-sticky
"""
CONTAINER = {
    "CONNECT_BOOTSTRAP_SERVERS": "b:9092",
    "CONNECT_GROUP_ID": "c",
    "CONNECT_CONFIG_STORAGE_TOPIC": "cc",
    "CONNECT_OFFSET_STORAGE_TOPIC": "co",
    "CONNECT_STATUS_STORAGE_TOPIC": "cs",
    "CONNECT_KEY_CONVERTER": "org.apache.kafka.connect.json.JsonConverter",
    "CONNECT_VALUE_CONVERTER": "org.apache.kafka.connect.json.JsonConverter",
    "CONNECT_SCHEDULED_REBALANCE_MAX_DELAY_MS": "60000",
    "CONNECT_SESSION_TIMEOUT_MS": "9000",
    "CONNECT_CONSUMER_MAX_POLL_INTERVAL_MS": "3000",
    "CONNECT_LOG4J_ROOT_LOGLEVEL": "WARN",
    "KAFKA_HEAP_OPTS": "-Xmx1g",
    "CLASSPATH": "/jars",
}


def advised(tmp_path: Path, text: str, name: str) -> dict[str, tuple[str, str]]:
    """By setting its name in the file, and what to change."""
    done = run_here("lint", written(tmp_path, text, name), "--json")
    found = json.loads(done.stdout)["advice"]
    return {each["setting"]: (each["written"], each["change"]) for each in found}


VARIABLES = """\
SPRING_KAFKA_CONSUMER_GROUPID=g
SPRING_KAFKA_CONSUMER_HEARTBEATINTERVAL=5s
SPRING_KAFKA_CONSUMER_PROPERTIES_SESSION_TIMEOUT_MS=6000
"""
BRACKETS = """\
spring.kafka.consumer.group-id=g
spring.kafka.consumer.properties.heartbeat.interval.ms=5000
spring.kafka.consumer.properties[session.timeout.ms]=6000
"""


@pytest.mark.parametrize("text", [VARIABLES, BRACKETS], ids=["variables", "brackets"])
def test_names_that_spring_boot_binds_are_read(tmp_path: Path, text: str) -> None:
    """Variables, which cannot tell where words end, and keys of a map in brackets."""
    found = advised(tmp_path, text, "a.properties")
    lines = [line.partition("=")[0] for line in text.splitlines()]
    assert found["heartbeat.interval.ms"] == (lines[1], "set at most 2000")
    assert found["session.timeout.ms"][0] == lines[2]


@pytest.mark.parametrize(("text", "name"), [(SPRING, "a.properties"), (YAML, "application.yml")])
def test_spring_boots_names_are_read_as_kafkas(tmp_path: Path, text: str, name: str) -> None:
    """Spring's own forms and its properties; nobody is told to remove what is Spring's alone."""
    found = advised(tmp_path, text, name)
    session, heartbeat = found["session.timeout.ms"], found["heartbeat.interval.ms"]
    assert session[0] == "spring.kafka.consumer.properties.session.timeout.ms"
    assert heartbeat == (heartbeat[0], "set at most 2000")
    assert heartbeat[0].startswith("spring.kafka.consumer.heartbeat")
    assert set(found) == {"session.timeout.ms", "heartbeat.interval.ms", "group.instance.id"}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("{}={}", "connect.env"),
        ("- {}={}", "compose.txt"),
        ('      - "{}={}"', "compose.yml"),
        ('      {}: "{}"', "compose.yaml"),
        ("export {}={}", "connect.sh"),
    ],
)
def test_variables_of_a_container_are_read_as_the_workers_settings(
    tmp_path: Path, line: str, name: str
) -> None:
    """As lines of an environment, or in a compose file; what is no setting is left alone."""
    lines = [line.format(*each) for each in CONTAINER.items()]
    if name.endswith("ml"):
        lines = [
            "services:",
            "  connect:",
            "    image: cp-kafka-connect",
            "    environment:",
            *lines,
        ]
    found = advised(tmp_path, "\n".join(lines), name)
    assert {setting: place for setting, (place, _) in found.items()} == {
        "session.timeout.ms": "CONNECT_SESSION_TIMEOUT_MS",
        "consumer.max.poll.interval.ms": "CONNECT_CONSUMER_MAX_POLL_INTERVAL_MS",
    }


@pytest.mark.parametrize(
    "text",
    [
        "spring: &s\n  kafka: *s\n",
        "\n".join(
            ["a0: &a0 {k: v}"]
            + [f"a{n + 1}: &a{n + 1} {{x: *a{n}, y: *a{n}, z: *a{n}}}" for n in range(30)]
        ),
    ],
    ids=["endless", "huge"],
)
def test_aliases_do_not_make_a_short_file_a_long_one(tmp_path: Path, text: str) -> None:
    """One line says so; a list of lists is no variable, and is not written out either."""
    done = run_here("lint", written(tmp_path, text, "application.yml"))

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "more than 100,000 values, or they are nested too deeply" in done.stderr


def test_misspelt_variable_is_asked_about(tmp_path: Path) -> None:
    """The name that was meant is close."""
    text = "".join(f"{name}={value}\n" for name, value in CONTAINER.items())
    found = advised(tmp_path, text + "CONNECT_WORKER_SYNC_TIMOUT_MS=1\n", "connect.env")
    assert found["worker.sync.timout.ms"] == (
        "CONNECT_WORKER_SYNC_TIMOUT_MS",
        "did you mean worker.sync.timeout.ms?",
    )


def test_advice_is_about_the_settings_name_in_the_file(tmp_path: Path) -> None:
    """Kafka's name first, the file's behind it."""
    done = run_here("lint", written(tmp_path, SPRING))
    assert (
        "session.timeout.ms=6000 (spring.kafka.consumer.properties.session.timeout.ms): "
        in done.stdout
    )


@pytest.mark.parametrize(
    ("text", "kind", "setting"),
    [
        ("application.id=a\ngroup.protocol=consumer\n", None, "group.protocol"),
        ("group.protocol=consumer\n", "streams", "group.protocol"),
        ("group.instance.id=a\n", "sink", "group.instance.id"),
        ("group.instance.id=a\n", "connect", "group.instance.id"),
    ],
)
def test_each_kind_of_client_has_rules_of_its_own(
    tmp_path: Path, text: str, kind: str | None, setting: str
) -> None:
    """Told by the names, or by --kind; a plain consumer has both settings."""
    file = written(tmp_path, text)
    done = run_here("lint", file, "--json", *(() if kind is None else ("--kind", kind)))
    found = json.loads(done.stdout)["advice"]
    assert setting in {each["setting"] for each in found}
    plain = json.loads(run_here("lint", file, "--json", "--kind", "consumer").stdout)["advice"]
    assert setting not in {each["setting"] for each in plain}
