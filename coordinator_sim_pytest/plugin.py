"""Hooks and fixtures. Imports pytest and the standard library; the rest comes with a fixture."""

import inspect
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator_sim.broker.faults.faults import Fault
    from coordinator_sim.harness.group_driver import GroupDriver
    from coordinator_sim.kafka.profiles import Profile
    from coordinator_sim.trace.events import TraceEvent
    from coordinator_sim_pytest.conformance import GradedEndpoint
    from coordinator_sim_pytest.server import KafkaServers, ServedKafka, ServerKind
    from coordinator_sim_pytest.virtual import KafkaInVirtualTime, VirtualClock

_MARKERS: Final = (
    'kafka_profile(version): the Kafka that the test\'s cluster behaves like, such as "3.9"',
    "kafka_brokers(count): how many brokers the test's cluster has",
    'kafka_settings(settings): of its brokers, as {"group.initial.rebalance.delay.ms": 3000}',
    "kafka_faults(*rules): fault rules that the test's cluster begins with",
    'kafka_bug(*numbers): bugs of Kafka\'s group coordinator, such as "KAFKA-9752", in the server',
)
_BY_POSITION_OR_NAME: Final = inspect.Parameter.POSITIONAL_OR_KEYWORD


class _Traced(Protocol):
    @property
    def events(self) -> "Sequence[TraceEvent]": ...


_TRACES: Final = pytest.StashKey[dict[str, _Traced]]()
"""Traces of a test's fixtures, by the fixture's name."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--kafka-bug`."""
    parser.getgroup("coordinator-sim").addoption(
        "--kafka-bug",
        metavar="ID",
        action="append",
        default=[],
        help="break every Kafka of this run with a bug that Kafka's group coordinator had, such as "
        "KAFKA-12890; may be repeated; list: the ids",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Put the bugs of `--kafka-bug` in, before a conftest or a test imports the coordinator.

    Raises:
        UsageError: a bug is unknown or cannot be put in any more, or the ids are asked for.
    """
    asked: list[str] = early_config.known_args_namespace.kafka_bug
    if not asked:
        return
    from coordinator_sim.errors import ConfigError
    from coordinator_sim_conformance.museum.bugs import Place, bugs_in_force, bugs_of

    if "list" in asked:
        raise pytest.UsageError(f"--kafka-bug: {', '.join(bugs_of(Place.SERVER))}")
    try:
        bugs_in_force(asked, Place.SERVER)
    except ConfigError as error:
        raise pytest.UsageError(f"--kafka-bug: {error}") from None


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say that every Kafka of this run is broken on purpose."""
    return _warnings(config)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say so at the end too, which `-q` shows."""
    for line in _warnings(config):
        terminalreporter.write_line(line)


def _warnings(config: pytest.Config) -> list[str]:
    asked: list[str] = config.getoption("kafka_bug")
    if not asked:
        return []
    from coordinator_sim_conformance.museum.bugs import Place, bugs_named, warning_of

    return [f"kafka: {warning_of(bug)}" for bug in bugs_named(asked, Place.SERVER)]


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Attach the coordinators' events to a failed test."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    traces = item.stash.get(_TRACES, None)
    if not traces or not report.failed:
        return
    from coordinator_sim_pytest.stories import story_of

    for name, traced in traces.items():
        report.sections.append((f"Kafka trace of {name}", story_of(traced)))


def _note(request: pytest.FixtureRequest, name: str, traced: _Traced) -> None:
    """Have the report of this test, if it fails, show that trace."""
    request.node.stash.setdefault(_TRACES, {})[name] = traced


def _given(marker: pytest.Mark) -> Any:  # noqa: ANN401 - what the marker is about
    """Return what a marker brings, by position or by the name in its form: one value, or all.

    Raises:
        UsageError: it brings more, less or something else than its form names.
    """
    form = next(each for each in _MARKERS if each.startswith(f"{marker.name}("))
    form = form.partition(":")[0]
    name = form.removeprefix(f"{marker.name}(").removesuffix(")")
    kind = inspect.Parameter.VAR_POSITIONAL if "*" in name else _BY_POSITION_OR_NAME
    signature = inspect.Signature([inspect.Parameter(name.removeprefix("*"), kind)])
    try:
        (value,) = signature.bind(*marker.args, **marker.kwargs).arguments.values() or ((),)
    except TypeError as error:
        raise pytest.UsageError(f"@pytest.mark.{marker.name}: {error}; use {form}") from None
    return value


def _profile(request: pytest.FixtureRequest) -> "Profile":
    from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, profile_named

    marker = request.node.get_closest_marker("kafka_profile")
    return DEFAULT_PROFILE if marker is None else profile_named(_given(marker))


def _faults(request: pytest.FixtureRequest) -> "list[Fault]":
    """Return the rules of every `kafka_faults` marker, the class's before the test's own."""
    from coordinator_sim_pytest.rules import rule_of

    markers = reversed(list(request.node.iter_markers("kafka_faults")))
    return [rule_of(each) for marker in markers for each in _given(marker)]


def _kind(request: pytest.FixtureRequest) -> "ServerKind":
    """Return the kind of server that the markers of a test ask for."""
    from coordinator_sim_pytest.server import QUICK, ServerKind

    return ServerKind(
        profile=_profile(request).name,
        brokers=_brokers(request),
        settings=tuple(sorted({**QUICK, **_settings(request)}.items())),
        bugs=_bugs(request),
    )


def _bugs(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return the bugs of the whole run, then those of a test's markers, each once."""
    markers = reversed(list(request.node.iter_markers("kafka_bug")))
    marked = [bug for marker in markers for bug in _given(marker)]
    return tuple(dict.fromkeys([*request.config.getoption("kafka_bug"), *marked]))


def _brokers(request: pytest.FixtureRequest) -> int:
    marker = request.node.get_closest_marker("kafka_brokers")
    count = 1 if marker is None else _given(marker)
    if not isinstance(count, int):
        raise pytest.UsageError(f"@pytest.mark.kafka_brokers: {count!r} is no whole number; use 3")
    return count


def _settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the settings of every `kafka_settings` marker, the test's own over its class's."""
    settings: dict[str, object] = {}
    for marker in reversed(list(request.node.iter_markers("kafka_settings"))):
        given = _given(marker)
        if not isinstance(given, Mapping):
            raise pytest.UsageError(
                f"@pytest.mark.kafka_settings: {given!r} is no dictionary; use "
                '{"group.initial.rebalance.delay.ms": 3000}'
            )
        settings.update(given)
    return {name: str(value) for name, value in settings.items()}


def _refuse(request: pytest.FixtureRequest, *markers: str) -> None:
    """Refuse markers that a fixture does not support, instead of ignoring them.

    Raises:
        UsageError: the test has such a marker.
    """
    for name in markers:
        if request.node.get_closest_marker(name) is not None:
            raise pytest.UsageError(f"{name} says nothing to {request.fixturename}")


@pytest.fixture(scope="session")
def kafka_servers() -> "Iterator[KafkaServers]":
    """The served clusters of this run, or of this worker of xdist: one a kind, when first used."""
    from coordinator_sim_pytest.server import KafkaServers

    servers = KafkaServers()
    yield servers
    servers.close()


@pytest.fixture
def kafka_server(
    request: pytest.FixtureRequest, kafka_servers: "KafkaServers"
) -> "Iterator[ServedKafka]":
    """A served cluster on real sockets, as new for every test; any client can be its client."""
    kind = _kind(request)
    served = kafka_servers.fresh(kind, _faults(request))
    _note(request, "kafka_server", served)
    yield served
    kafka_servers.give_back(kind)


@pytest.fixture(scope="class")
def graded_endpoint(request: pytest.FixtureRequest) -> "Iterator[GradedEndpoint]":
    """The endpoint of a subclass of `CoordinatorConformance`, and how its cases ended."""
    from coordinator_sim_pytest.conformance import graded

    with graded(request) as endpoint:
        yield endpoint


@pytest.fixture
def group_coordinator(request: pytest.FixtureRequest) -> "GroupDriver":
    """One group at a coordinator in this process, driven by hand in virtual time."""
    from coordinator_sim_pytest.in_process import RecordedGroup

    _refuse(request, "kafka_bug", "kafka_brokers", "kafka_faults", "kafka_settings")
    driver = RecordedGroup(_profile(request))
    _note(request, "group_coordinator", driver)
    return driver


@pytest.fixture
def virtual_clock() -> "Iterator[VirtualClock]":
    """An asyncio loop in virtual time, to run programs on."""
    from coordinator_sim_pytest.virtual import VirtualClock

    clock = VirtualClock()
    yield clock
    clock.close()


@pytest.fixture
def virtual_kafka(request: pytest.FixtureRequest) -> "KafkaInVirtualTime":
    """A served cluster in virtual time, with unmodified asyncio clients."""
    from coordinator_sim_pytest.virtual import KafkaInVirtualTime, cluster_of

    _refuse(request, "kafka_bug")
    cluster = cluster_of(_profile(request), _brokers(request), _settings(request))
    kafka = KafkaInVirtualTime(cluster, _faults(request))
    _note(request, "virtual_kafka", kafka)
    return kafka
