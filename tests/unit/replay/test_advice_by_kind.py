"""Advice that is given to a kind of client is taken by it: findings, replays, rehearsals, lint."""

import re
from datetime import UTC
from functools import cache

import pytest
from msgspec.structs import replace

from coordinator_sim.cli.lint import advice_for
from coordinator_sim.clients.client_kind import ClientKind, kind_of_lines, refusal
from coordinator_sim.clients.settings_advice import CONSUMER_NAMES
from coordinator_sim.clients.streams_advice import STREAMS_NAMES
from coordinator_sim.connect.settings.worker_settings import WORKER_CONFIG_DEF
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.writing.writer import broker_log as written
from coordinator_sim.replay.costs import CAME, POLL_TIMEOUT
from coordinator_sim.replay.findings import Finding, findings_of
from coordinator_sim.replay.logs import replay_log
from coordinator_sim.replay.savings import findings_in, weigh
from coordinator_sim.replay.settings import parse_grid
from coordinator_sim.replay.upgrade_hurdles import Kind, hurdles_of
from coordinator_sim.replay.work import Partitions, known_groups, parse_partitions
from coordinator_sim.sim.scenario import ConsumerGroupSpec, ConsumerSpec, rolling_bounce
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.group_shape import seen_group
from coordinator_sim_scenarios.catalog import all_scenarios
from tests.simulated import events_of
from tests.unit.replay.test_findings import cost

INFO = RunInfo(trace_id="t", source=Source.BROKER_LOG, cluster_id="c", version="0", profile="4.4")
IDS = {
    ClientKind.CONSUMER: "orders-{}",
    ClientKind.STREAMS: "app-{}-StreamThread-1-consumer",
    ClientKind.CONNECT: "connect-{}",
    ClientKind.SINK: "connector-consumer-out-{}",
}
KINDS_OF_FINDINGS = (
    {"deploy": 1, "restart": CAME, "client": "a"},
    {"dead_ms": 900, "start_ms": 0},
    {"dead_ms": 900, "start_ms": 0, "restart": CAME},
    {"initial_ms": 900},
    {"slow_ms": 1_000},
    {"trigger": POLL_TIMEOUT},
    {"restart": CAME, "client": "a"},
    {"trigger": "coordinator moved"},
    {},
)
PROTOCOLS = {ClientKind.CONNECT: "default", ClientKind.STREAMS: "stream"}
OF_WORKERS = WORKER_CONFIG_DEF.keys.keys() | {"group.instance.id"}
SETTINGS = CONSUMER_NAMES | STREAMS_NAMES | OF_WORKERS
NAMES = re.compile(r"[a-z]+(?:\.[a-z_]+)+")


def accepted(kind: ClientKind, text: str) -> None:
    """Assert that every setting of a client that a text names is one that the kind has."""
    for name in NAMES.findall(text.replace("group.protocol=streams", "")):
        own = name.removeprefix("consumer.").removeprefix("override.")
        if own in SETTINGS:
            assert refusal(kind, own) is None, f"{kind} is told of {own}: {text}"


def accepted_by_lint(kind: ClientKind, setting: str) -> None:
    """Assert that a file with the setting has no complaint about it, if clients have it at all."""
    name, _, value = setting.partition("=")
    if name in SETTINGS:
        found = advice_for(kind, {name: value})
        assert name not in {each.setting for each in found}, f"{kind}: {setting}: {found}"


@cache
def broker_log(kind: ClientKind) -> list[TraceEvent]:
    """A rolling restart as a broker logs it, with the client ids of a kind."""
    plain = all_scenarios()["rolling-bounce"]
    names = [IDS[kind].format(number) for number in range(1, 7)]
    members = tuple(ConsumerSpec(name=name) for name in names)
    group = ConsumerGroupSpec(group_id="orders-app", topics=("orders",), members=members)
    bounces = rolling_bounce(names, first_at_ms=60_000, every_ms=20_000, down_ms=2_000)
    lines = written(
        events_of(replace(plain, groups=(group,), happenings=bounces)), profile_named(plain.profile)
    )
    return list(parse_broker_log(lines, source_ref="server.log", tz=UTC))


@pytest.mark.parametrize("kind", ClientKind)
@pytest.mark.parametrize("changed", KINDS_OF_FINDINGS)
def test_each_finding_advises_what_its_clients_can_set(
    kind: ClientKind, changed: dict[str, object]
) -> None:
    """Every kind of finding for every kind of client."""
    own = {"client_kind": kind, "protocol_name": PROTOCOLS.get(kind, "range"), **changed}
    costs = [cost(number, **own) for number in range(1, 7)]
    for finding in findings_of("g", costs):
        accepted(kind, finding.change)
        if finding.setting is not None:
            assert refusal(kind, finding.setting.partition("=")[0]) is None
            accepted_by_lint(kind, finding.setting)


@pytest.mark.parametrize("kind", ClientKind)
def test_advice_from_a_brokers_log_alone_is_not_refused_by_the_replay(kind: ClientKind) -> None:
    """Client ids are all that such a log tells of the kind."""
    events = broker_log(kind)
    assert kind_of_lines(events) is kind
    found: list[Finding] = findings_in(events, Source.BROKER_LOG)
    assert {each.kind for each in found} >= {"deploys-rebalance-each-member", "slow-joiners"}
    for each in weigh(found, events, INFO, Partitions({})):
        assert each.not_computed == ""
        assert (each.finding.setting is None) == (each.finding.saves_s is None)


@pytest.mark.parametrize(
    ("kind", "setting", "words"),
    [
        (ClientKind.CONNECT, "group.instance.id=stable", "no setting of a Connect cluster"),
        (ClientKind.CONNECT, "group.protocol=consumer", "never converts"),
        (ClientKind.STREAMS, "group.protocol=consumer", "KIP-1071"),
        (ClientKind.STREAMS, "partition.assignment.strategy=range", "brings its own"),
        (ClientKind.SINK, "group.instance.id=stable", "fence each other"),
        (ClientKind.CONSUMER, "connect.protocol=eager", "of a Connect cluster alone"),
    ],
)
def test_replay_refuses_what_the_clients_of_a_log_cannot_set(
    kind: ClientKind, setting: str, words: str
) -> None:
    """Partitions are given, as a user does for a broker's log."""
    known = known_groups(events := broker_log(kind), parse_partitions(["orders=12"]))
    report = replay_log(events, INFO, parse_grid([setting], "4.4"), known=known).report
    (entry,) = report.what_if
    assert words in entry.not_computed


@pytest.mark.parametrize("kind", ClientKind)
def test_rehearsal_advises_what_the_clients_of_a_log_can_set(kind: ClientKind) -> None:
    """Who cannot have the consumer protocol is told so, and its way; nothing else is said."""
    events = broker_log(kind)
    seen = seen_group(events, events[0].group_id or "")
    assert seen is not None
    found = hurdles_of(replace(seen, topics={"orders": 12}), events, "3.9-4.0")
    blocked = refusal(kind, "group.protocol")
    assert [each.kind for each in found if each.what == f"{blocked}."] == (
        [Kind.BLOCKS] if blocked else []
    )
    for each in found if blocked is None else ():
        accepted(kind, each.fix)
    assert blocked is None or len(found) == 1
