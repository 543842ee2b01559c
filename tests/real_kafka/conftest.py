"""Real Kafka, or a clear reason why not."""

import pytest

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.real_kafka import kafka

COSTLIEST = (
    *("test_log_directory.py", "test_three_sources.py", "test_transactional_clients.py"),
    *("test_offsets_log.py", "test_trogdor_daemons.py", "test_share_groups.py"),
    *("test_online_upgrade.py", "test_connect_member.py", "test_admin_differential.py"),
    *("test_member.py", "test_java_groups.py"),
)
"""Files that take minutes: they come first, so that no process ends with one of them alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the costliest files; see `--no-loadscope-reorder` in `noxfile.py`."""
    order = {name: number for number, name in enumerate(COSTLIEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


@pytest.fixture(scope="session", autouse=True)
def kafka_jars() -> None:
    """Java, Maven and the jars of broker and tools; without them these tests are skipped."""
    try:
        for version in (kafka.BROKER_VERSION, kafka.OLD_BROKER_VERSION, kafka.TOOLS_VERSION):
            kafka.jars_of(version)
    except MissingDependencyError as error:
        pytest.skip(str(error))
