"""Kafka's own tools at a served cluster: by each mechanism, by certificates, and without rights."""

from pathlib import Path
from typing import Final

import pytest

from coordinator_sim_conformance.real_kafka.kafka import TOOLS_VERSION, run_java, write_properties
from tests.over_tcp import test_secure_listeners as secure

pytestmark = pytest.mark.real_kafka

serving = secure.serving
TOPICS: Final = "org.apache.kafka.tools.TopicCommand"
CONFIGS: Final = "kafka.admin.ConfigCommand"
ACLS: Final = "org.apache.kafka.tools.AclCommand"
CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class Tools:
    """Tools at one listener, with the settings of one client."""

    def __init__(self, serving: secure.Serving, listener: str, folder: Path) -> None:
        self._serving = serving
        self._listener = listener
        self._file = folder / "client.properties"
        self.settings = {
            "security.protocol": listener,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": serving.file("authority.pem"),
        }

    def log_in(self, mechanism: str, user: str = secure.USER, password: str = "") -> "Tools":
        """Use SASL."""
        said = (password or secure.PASSWORD).replace('"', '\\"')
        self.settings["sasl.mechanism"] = mechanism
        self.settings["sasl.jaas.config"] = (
            f'{MODULES[mechanism]} required username="{user}" password="{said}";'
        )
        return self

    def run(self, tool: str, *arguments: str) -> str:
        """What a tool says, on both streams."""
        write_properties(self._file, self.settings)
        address = self._serving.listeners[self._listener]
        common = ("--bootstrap-server", address, "--command-config", str(self._file))
        done = run_java(TOOLS_VERSION, tool, *common, *arguments)
        return done.stdout + done.stderr


@pytest.mark.parametrize("mechanism", list(MODULES))
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_tool_logs_in(
    serving: secure.Serving, tmp_path: Path, listener: str, mechanism: str
) -> None:
    """kafka-topics lists what there is."""
    tools = Tools(serving, listener, tmp_path).log_in(mechanism)

    assert "orders" in tools.run(TOPICS, "--list").splitlines()


def test_tool_is_known_by_its_certificate(serving: secure.Serving, tmp_path: Path) -> None:
    """A client with one makes a topic, changes it and deletes it."""
    tools = Tools(serving, "SSL", tmp_path)
    both = tmp_path / "carol.pem"
    parts = [
        Path(serving.file(name)).read_text(encoding="ascii") for name in ("carol.pem", "carol.key")
    ]
    both.write_text("".join(parts), encoding="ascii")
    tools.settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(both)}
    of_topic = ("--entity-type", "topics", "--entity-name", "made")

    assert "Created topic made." in tools.run(TOPICS, "--create", "--topic", "made")
    change = ("--add-config", "retention.ms=1000")
    assert "Completed updating" in tools.run(CONFIGS, "--alter", *of_topic, *change)
    assert "retention.ms=1000" in tools.run(TOPICS, "--describe", "--topic", "made")
    tools.run(TOPICS, "--delete", "--topic", "made")
    assert "made" not in tools.run(TOPICS, "--list").splitlines()


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-512", "due to invalid credentials with SASL mechanism SCRAM-SHA-512"),
    ],
)
def test_tool_is_told_of_a_wrong_password(
    serving: secure.Serving, tmp_path: Path, mechanism: str, text: str
) -> None:
    """With the words of a broker."""
    tools = Tools(serving, "SASL_PLAINTEXT", tmp_path).log_in(mechanism, password="wrong")  # noqa: S106 - of a test

    assert text in tools.run(TOPICS, "--list")


def test_user_made_by_a_tool_may_do_what_rules_allow(
    serving: secure.Serving, tmp_path: Path
) -> None:
    """Without a rule the topic, then the group is refused; then a record is read."""
    admin = Tools(serving, "SASL_PLAINTEXT", tmp_path).log_in("PLAIN")
    made = ("--entity-type", "users", "--entity-name", "dave")
    password = ("--add-config", "SCRAM-SHA-256=[password=pw-dave]")
    assert "Completed updating" in admin.run(CONFIGS, "--alter", *made, *password)
    secure.round_trip(secure.librdkafka(serving, "PLAINTEXT"))
    (tmp_path / "dave").mkdir()
    dave = Tools(serving, "SASL_PLAINTEXT", tmp_path / "dave").log_in(
        "SCRAM-SHA-256", "dave", "pw-dave"
    )
    reads = ("--topic", "orders", "--group", "readers", "--from-beginning", "--max-messages", "1")
    allow = ("--add", "--allow-principal", "User:dave", "--operation", "Read")

    assert "Not authorized to access topics: [orders]" in dave.run(CONSUMER, *reads)
    admin.run(ACLS, *allow, "--topic", "orders")
    assert "Not authorized to access group: readers" in dave.run(CONSUMER, *reads)
    admin.run(ACLS, *allow, "--group", "readers")
    assert "Processed a total of 1 messages" in dave.run(CONSUMER, *reads)
