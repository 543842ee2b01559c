"""The pytest plugin, as a project of its own uses it: each test here is a run of pytest."""

from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec

import pytest

RunPytest = Callable[..., tuple[int, str]]

ONLY_PYTEST = """
import sys

def test_nothing_of_ours_is_imported():
    ours = [m for m in sys.modules if m.startswith(("coordinator_sim.", "coordinator_sim_c"))]
    assert ours == []
    assert "coordinator_sim_pytest.plugin" in sys.modules
    assert not {"msgspec", "asyncio", "aiokafka", "pyarrow"} & set(sys.modules)
"""


def test_nothing_is_imported_until_a_fixture_is_used(run_pytest: RunPytest) -> None:
    """The plugin is in every run of pytest of whoever has it installed: it must cost nothing."""
    code, output = run_pytest(ONLY_PYTEST)
    assert code == 0, output


def test_the_distribution_offers_it_to_pytest() -> None:
    """Who installs it has it in every run."""
    offered = {each.name: each.value for each in entry_points(group="pytest11")}
    if "coordinator_sim" not in offered:
        pytest.skip("the installed distribution is older than the plugin")
    assert offered["coordinator_sim"] == "coordinator_sim_pytest"


GROUP = """
import pytest
from coordinator_sim_pytest import generations_grow, one_leader

def test_two_members_share_a_group(group_coordinator):
    group_coordinator.join("", version=3)
    group_coordinator.harness.advance(10_000)
    assert group_coordinator.state == "AwaitingSync"
    generations_grow(group_coordinator)

@pytest.mark.kafka_profile("0.10.2")
def test_of_another_kafka(group_coordinator):
    assert group_coordinator.harness.profile.name == "0.10.2"

def test_that_fails(group_coordinator):
    group_coordinator.join("", version=3)
    assert False, "on purpose"
"""


def test_a_group_coordinator_in_the_process(run_pytest: RunPytest) -> None:
    """Driven by hand; its profile is the marker's; a failed test tells its trace."""
    code, output = run_pytest(GROUP)
    assert code == 1
    assert "1 failed, 2 passed" in output, output
    section = output.partition("Kafka trace of group_coordinator")[2]
    assert "JOIN_REQ" in section
    assert "MEMBER_ADDED" in section


CLOCK = """
import asyncio

async def two_years():
    await asyncio.sleep(63_072_000)
    return asyncio.get_running_loop().time()

def test_without_asyncio(virtual_clock):
    assert virtual_clock.run(two_years()) >= 63_072_000
    assert virtual_clock.now_s >= 63_072_000
"""


def test_a_virtual_clock_without_any_plugin_for_asyncio(run_pytest: RunPytest) -> None:
    """A plain test runs an asyncio program on it."""
    code, output = run_pytest(CLOCK)
    assert code == 0, output


VIRTUAL = """
import asyncio
import pytest
from aiokafka.admin import AIOKafkaAdminClient

async def an_hour_and_the_topics(bootstrap):
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await asyncio.sleep(3600)
    described = await admin.describe_topics(["orders"])
    await admin.close()
    return len(described[0]["partitions"])
"""

SYNC = (
    VIRTUAL
    + """
def test_orders(virtual_kafka):
    async def main(kafka):
        return await an_hour_and_the_topics(kafka.bootstrap)

    run = virtual_kafka.run(main, topics={"orders": 3})
    assert run.result == 3
    assert run.lasted_us >= 3_600_000_000
"""
)

ASYNC = (
    VIRTUAL
    + """
@pytest.mark.{marker}
async def test_orders(virtual_kafka):
    async with virtual_kafka.serving(topics={{"orders": 3}}) as kafka:
        assert await an_hour_and_the_topics(kafka.bootstrap) == 3
"""
)

ASYNCIO_CONFTEST = """
from coordinator_sim_pytest import virtual_loop

def pytest_asyncio_loop_factories(config, item):
    return {"virtual": virtual_loop}
"""

ANYIO_CONFTEST = """
import pytest
from coordinator_sim_pytest import virtual_loop

@pytest.fixture
def anyio_backend():
    return "asyncio", {"loop_factory": virtual_loop}
"""


def test_kafka_in_virtual_time_without_asyncio(run_pytest: RunPytest) -> None:
    """The fixture runs the program."""
    pytest.importorskip("aiokafka")
    code, output = run_pytest(SYNC)
    assert code == 0, output


def test_kafka_in_virtual_time_with_pytest_asyncio(run_pytest: RunPytest) -> None:
    """The hook of pytest-asyncio for loop factories puts the tests on a virtual loop."""
    pytest.importorskip("aiokafka")
    if find_spec("pytest_asyncio") is None:
        pytest.skip("pytest-asyncio is not installed")
    options = ("-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function")
    source = ASYNC.format(marker="asyncio")
    code, output = run_pytest(source, *options, conftest=ASYNCIO_CONFTEST)
    assert code == 0, output


def test_kafka_in_virtual_time_with_anyio(run_pytest: RunPytest) -> None:
    """The backend of anyio takes a loop factory."""
    pytest.importorskip("aiokafka")
    pytest.importorskip("anyio")
    source = ASYNC.format(marker="anyio")
    code, output = run_pytest(source, "-p", "anyio.pytest_plugin", conftest=ANYIO_CONFTEST)
    assert code == 0, output


def test_on_another_loop_it_says_which_one_it_needs(run_pytest: RunPytest) -> None:
    """One line, and how to get there."""
    pytest.importorskip("anyio")
    conftest = "import pytest\n@pytest.fixture\ndef anyio_backend(): return 'asyncio'\n"
    source = ASYNC.format(marker="anyio")
    code, output = run_pytest(source, "-p", "anyio.pytest_plugin", conftest=conftest)
    assert code == 1
    assert "loop_factory=VirtualLoop" in output


FAULTS = (
    VIRTUAL
    + """
SLOW = {"match": {"api": "Metadata"}, "action": {"do": "delay", "ms": 2500}, "times": 1}

@pytest.mark.kafka_faults(SLOW)
def test_slow(virtual_kafka):
    async def main(kafka):
        await an_hour_and_the_topics(kafka.bootstrap)
        return [each.hits for each in kafka.server.cluster.faults.states()]

    run = virtual_kafka.run(main, topics={"orders": 3})
    assert run.result == [1]
    assert run.lasted_us >= 3_602_500_000

@pytest.mark.kafka_faults({"action": {"do": "explode"}})
def test_wrong(virtual_kafka):
    pass
"""
)


def test_fault_rules_by_a_marker(run_pytest: RunPytest) -> None:
    """Rules are plain data; a rule that cannot be is an error that says why."""
    pytest.importorskip("aiokafka")
    code, output = run_pytest(FAULTS)
    assert code == 1
    assert "1 passed, 1 error" in output, output
    assert "explode" in output


MARKED = """
import pytest

@pytest.mark.kafka_brokers(2)
@pytest.mark.kafka_settings({"num.partitions": 7})
@pytest.mark.kafka_profile("3.9")
def test_virtual(virtual_kafka):
    assert virtual_kafka.settings.broker_ids == (1, 2)
    assert virtual_kafka.settings.num_partitions == 7
    assert virtual_kafka.settings.profile.name == "3.9"

@pytest.mark.kafka_bug("KAFKA-9752")
def test_bug(virtual_kafka):
    pass

@pytest.mark.kafka_faults({"action": {"do": "close"}})
def test_faults(group_coordinator):
    pass
"""


def test_markers_that_say_nothing_to_a_fixture_are_refused(run_pytest: RunPytest) -> None:
    """Rather than a test that passes without what it asked for."""
    code, output = run_pytest(MARKED)
    assert code == 1
    assert "1 passed, 2 errors" in output, output
    assert "kafka_bug says nothing to virtual_kafka" in output
    assert "kafka_faults says nothing to group_coordinator" in output


WHOLE_RUN = """
def test_of_the_group(group_coordinator):
    step = group_coordinator.join(version=9)
    assert not step.replies, "an id is handed out"
"""


def test_a_bug_of_the_whole_run_is_in_every_kafka(run_pytest: RunPytest) -> None:
    """A first JoinGroup of version 9 is parked under KAFKA-7824, and the report says why."""
    code, output = run_pytest(WHOLE_RUN, "--kafka-bug", "KAFKA-7824")
    assert code == 0, output
    assert "broken on purpose, no evidence of how Kafka behaves: KAFKA-7824: " in output
    assert run_pytest(WHOLE_RUN)[0] == 1


@pytest.mark.parametrize(
    ("bug", "told"),
    [
        ("KAFKA-8463", "no bug 'KAFKA-8463' of a served coordinator; there are KAFKA-12890,"),
        ("list", "--kafka-bug: KAFKA-12890, KAFKA-9752,"),
    ],
)
def test_a_bug_that_does_not_fit_is_one_line(run_pytest: RunPytest, bug: str, told: str) -> None:
    """A client's bug cannot be put into a broker; `list` tells which can."""
    code, output = run_pytest(WHOLE_RUN, "--kafka-bug", bug)
    assert code == 4
    assert told in output
    assert "Traceback" not in output


NAMED = """
import pytest

@pytest.mark.kafka_brokers(count=2)
@pytest.mark.kafka_settings(settings={"num.partitions": 7})
@pytest.mark.kafka_profile(version="3.9")
def test_virtual(virtual_kafka):
    assert virtual_kafka.settings.broker_ids == (1, 2)
    assert virtual_kafka.settings.num_partitions == 7
    assert virtual_kafka.settings.profile.name == "3.9"
"""


def test_markers_take_what_they_are_about_by_name_too(run_pytest: RunPytest) -> None:
    """By the names that `pytest --markers` shows."""
    code, output = run_pytest(NAMED)
    assert code == 0, output


REFUSED = {
    "kafka_brokers(brokers=3)": "kafka_brokers: missing a required argument: 'count'; use",
    "kafka_brokers(1, 2)": "kafka_brokers: too many positional arguments; use",
    "kafka_brokers('two')": "kafka_brokers: 'two' is no whole number; use 3",
    "kafka_settings(num=7)": "kafka_settings: missing a required argument: 'settings'; use",
    "kafka_settings(7)": "kafka_settings: 7 is no dictionary; use",
    "kafka_profile()": "kafka_profile: missing a required argument: 'version'; use",
    "kafka_faults(rule={})": "kafka_faults: got an unexpected keyword argument 'rule'; use",
}


def test_markers_refuse_what_they_do_not_know(run_pytest: RunPytest) -> None:
    """Instead of ignoring it, in a line that says what the marker takes."""
    source = "import pytest\n" + "".join(
        f"\n@pytest.mark.{marker}\ndef test_of_{number}(virtual_kafka):\n    pass\n"
        for number, marker in enumerate(REFUSED)
    )
    code, output = run_pytest(source)
    assert code == 1
    assert f"{len(REFUSED)} errors" in output, output
    for told in REFUSED.values():
        assert f"@pytest.mark.{told}" in output, output
