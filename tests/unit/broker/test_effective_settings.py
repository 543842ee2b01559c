"""Settings without an effect: the table of the others is what the code reads."""

import ast
from pathlib import Path

import pytest

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.configs.effective import READ_BY_NAME, without_effect
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.releases import RELEASES

ROOM = Path(__file__).resolve().parents[3] / "coordinator_sim"
READERS = ("broker", "server", "coordinator", "cli/serve.py", "cli/serve_security.py")
TABLE = ROOM / "broker/configs/effective.py"
ONLY_CHECKED = {
    "compression.type",
    "cordoned.log.dirs",
    "group.streams.topology.description.plugin.class",
    "log.flush.scheduler.interval.ms",
    "log.roll.jitter.hours",
    "log.roll.jitter.ms",
    "max.connection.creation.rate",
    "num.network.threads",
    "port",
    "principal.builder.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.mechanism.inter.broker.protocol",
    "sasl.server.callback.handler.class",
}
"""Names in the code that shape an error, or are no setting there."""


def known_settings() -> set[str]:
    """The broker settings of all releases."""
    plugins = {"super.users", "allow.everyone.if.no.acl.found"}
    return plugins.union(
        *(Configs(profile_named(name), {}, MetadataImage()).broker for name in RELEASES)
    )


def literals() -> set[str]:
    """The broker settings that the code of a served cluster names."""
    known = known_settings()
    files = [file for name in READERS for file in sorted((ROOM / name).rglob("*.py"))]
    files += [ROOM / name for name in READERS if name.endswith(".py")]
    return {
        node.value
        for file in files
        if file != TABLE
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known
    }


def test_table_of_read_settings_is_what_the_code_names() -> None:
    """A setting that code begins to read, or no longer reads, changes the table."""
    found = literals()
    assert sorted(READ_BY_NAME - found) == []
    idle = without_effect(profile_named(RELEASES[-1]), sorted(found))
    assert [name for name in idle if name not in ONLY_CHECKED] == []


@pytest.mark.parametrize(
    "name", ["background.threads", "broker.rack", "num.io.threads", "log.dirs"]
)
def test_setting_that_nothing_reads_has_no_effect(name: str) -> None:
    """Its neighbours that something reads are left out."""
    names = [name, "group.share.max.session.timeout.ms", "log.retention.hours", "num.partitions"]
    assert without_effect(profile_named(RELEASES[-1]), names) == [name]
