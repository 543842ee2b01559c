"""Real clients at listeners with SASL and TLS: who gets in, and what the others are told."""

import asyncio
import datetime as dt
import ipaddress
import json
import ssl
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from confluent_kafka import Consumer, Producer, TopicPartition
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from typer.testing import CliRunner

from coordinator_sim_conformance.cli.main import app as conformance

with warnings.catch_warnings():
    # kafka-python reads its schemas with a function that is deprecated.
    warnings.simplefilter("ignore")
    from kafka import KafkaConsumer, KafkaProducer

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LISTENERS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LIMIT_S: Final = 20
USER, PASSWORD = "alice", "a secret, with = and ,"


@dataclass(slots=True)
class Serving:
    """A server and what its clients need."""

    listeners: dict[str, str]
    directory: Path
    log: Path

    def file(self, name: str) -> str:
        """A certificate or a key."""
        return str(self.directory / name)


def name(common: str) -> x509.Name:
    """A subject."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def issue(directory: Path, subject: str, issuer: tuple[x509.Certificate, Any] | None) -> Any:  # noqa: ANN401 - a key of any kind
    """Make a certificate; itself and its key, also as files."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    signed_by = key if issuer is None else issuer[1]
    local = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(subject) if issuer is None else issuer[0].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([local]), critical=False)
        .sign(signed_by, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (directory / f"{subject}.pem").write_bytes(certificate.public_bytes(pem))
    (directory / f"{subject}.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, key


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server with every kind of listener; client certificates are asked for."""
    directory = tmp_path_factory.mktemp("secure")
    authority = issue(directory, "authority", None)
    issue(directory, "server", authority)
    issue(directory, "carol", authority)
    (directory / "users").write_text(f"{USER}:{PASSWORD}\n", encoding="utf-8")
    ready, log = directory / "ready", directory / "log"
    command = [
        *(sys.executable, "-m", "coordinator_sim", "serve", "--no-control"),
        *("--listeners", ",".join(f"{each}://127.0.0.1:0" for each in LISTENERS)),
        *("--users-file", str(directory / "users"), "--ready-file", str(ready)),
        *("--tls-cert", str(directory / "server.pem")),
        *("--tls-key", str(directory / "server.key")),
        *("--tls-ca", str(directory / "authority.pem")),
        *("--set", "ssl.client.auth=requested", "--topics", "orders:1"),
        *("--set", "group.initial.rebalance.delay.ms=0"),
        *("--set", "authorizer.class.name=StandardAuthorizer"),
        *("--set", "super.users=User:ANONYMOUS;User:alice;User:CN=carol"),
    ]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        deadline = time.monotonic() + LIMIT_S
        while not ready.exists():
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        listeners = json.loads(ready.read_text(encoding="utf-8"))["listeners"]
        yield Serving(listeners, directory, log)
        process.terminate()


def librdkafka(serving: Serving, listener: str, **settings: str) -> dict[str, Any]:
    """Settings of librdkafka for a listener, with underscores for dots."""
    return {
        "bootstrap.servers": serving.listeners[listener],
        "security.protocol": listener,
        "ssl.ca.location": serving.file("authority.pem"),
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        **{key.replace("_", "."): value for key, value in settings.items()},
    }


def round_trip(settings: dict[str, Any]) -> bytes | None:
    """Write a record and read it by a group, with librdkafka."""
    producer = Producer(settings)
    producer.produce("orders", b"by librdkafka", partition=0)
    assert producer.flush(LIMIT_S) == 0
    consumer = Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("orders", 0, 0)])
    try:
        message = consumer.poll(LIMIT_S)
        return None if message is None or message.error() else message.value()
    finally:
        consumer.close()


def workload_error(serving: Serving, kind: str, password: str, **settings: Any) -> str:  # noqa: ANN401 - any JSON
    """What a workload of Trogdor ends with that logs in with the settings of Java's clients."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    conf = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="{USER}" password="{password}";',
    }
    spec = {
        "class": f"org.apache.kafka.trogdor.workload.{kind}Spec",
        "bootstrapServers": serving.listeners["SASL_PLAINTEXT"],
        "targetMessagesPerSec": 100,
        "maxMessages": 5,
        "commonClientConf": conf,
        **settings,
    }
    line = json.dumps({"id": "t", "workload": spec}).encode() + b"\n"
    command = (sys.executable, "-m", "coordinator_sim.live.trogdor.workload_process")
    done = subprocess.run(command, input=line, capture_output=True, timeout=60, check=False)
    said = [json.loads(each) for each in done.stdout.splitlines()]
    (error,) = (str(each["error"]) for each in said if "error" in each)
    return error


def test_workload_logs_in_with_javas_settings(serving: Serving) -> None:
    """Its admin client, its producer and its consumer."""
    topics = {"logged-in": {"replicationFactor": 1}}
    assert workload_error(serving, "RoundTripWorkload", PASSWORD, activeTopics=topics) == ""


@pytest.mark.parametrize(
    ("kind", "topics"), [("ProduceBench", {"refused": {}}), ("ConsumeBench", ["orders"])]
)
def test_refused_login_ends_a_workload(serving: Serving, kind: str, topics: object) -> None:
    """With the broker's words, rather than after its duration."""
    error = workload_error(serving, kind, "wrong", activeTopics=topics)
    assert "Authentication failed: Invalid username or password" in error


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_librdkafka_logs_in(serving: Serving, listener: str, mechanism: str) -> None:
    """Each mechanism, with and without TLS."""
    assert round_trip(librdkafka(serving, listener, sasl_mechanism=mechanism))


def graded(serving: Serving, listener: str, **changed: str) -> tuple[int, str]:
    """Exit code and output of the suite at a listener."""
    settings = {
        "security.protocol": listener,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": serving.file("authority.pem"),
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'Module required username="{USER}" password="{PASSWORD}";',
        **{name.replace("_", "."): value for name, value in changed.items()},
    }
    file = serving.directory / "client.properties"
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    file.write_text(text, encoding="utf-8")
    where = ("--bootstrap", serving.listeners[listener], "--command-config", str(file))
    done = CliRunner().invoke(conformance, ["run", *where, "--case", "SYNC-002"])
    return done.exit_code, f"{done.output}{done.exception or ''}"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_the_suite_logs_in(serving: Serving, listener: str, mechanism: str) -> None:
    """Each mechanism, with and without TLS."""
    code, output = graded(serving, listener, sasl_mechanism=mechanism)

    assert (code, "1 passed" in output) == (0, True), output


def test_the_suite_speaks_tls(serving: Serving) -> None:
    """Without a login."""
    code, output = graded(serving, "SSL")

    assert (code, "1 passed" in output) == (0, True), output


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_suite_is_told_of_a_wrong_password(serving: Serving, mechanism: str) -> None:
    """In one line that names the user."""
    jaas = f'Module required username="{USER}" password="wrong";'

    code, output = graded(
        serving, "SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=jaas
    )

    assert code != 0
    assert f"the login as '{USER}' failed" in output


def test_librdkafka_speaks_tls_with_and_without_a_certificate(serving: Serving) -> None:
    """With one it is its subject; without one it is nobody."""
    certified = librdkafka(
        serving,
        "SSL",
        ssl_certificate_location=serving.file("carol.pem"),
        ssl_key_location=serving.file("carol.key"),
    )

    assert round_trip(certified)
    assert round_trip(librdkafka(serving, "SSL"))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_is_told_of_a_wrong_password(serving: Serving, mechanism: str) -> None:
    """An authentication error with Kafka's words."""
    said: list[str] = []
    settings = librdkafka(serving, "SASL_PLAINTEXT", sasl_mechanism=mechanism)
    settings |= {"sasl.password": "wrong", "error_cb": lambda error: said.append(str(error))}
    producer = Producer(settings)
    deadline = time.monotonic() + LIMIT_S
    while not said and time.monotonic() < deadline:
        producer.poll(0.1)

    assert "_AUTHENTICATION" in said[0]
    assert "Authentication failed" in said[0]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_logs_in(serving: Serving, mechanism: str) -> None:
    """The client writes and reads over SASL."""
    settings = {
        "bootstrap_servers": serving.listeners["SASL_SSL"],
        "security_protocol": "SASL_SSL",
        "ssl_cafile": serving.file("authority.pem"),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
    }
    producer = KafkaProducer(**settings)
    producer.send("orders", b"by kafka-python").get(LIMIT_S)
    producer.close()
    consumer = KafkaConsumer(
        "orders", **settings, auto_offset_reset="earliest", consumer_timeout_ms=LIMIT_S * 1_000
    )
    record = next(consumer)
    consumer.close()

    assert record.topic == "orders"


def test_kafka_python_with_a_wrong_password_stays_outside(serving: Serving) -> None:
    """The client does not start. How fast it reads before the end decides which error it shows.

    In a process of its own, because it leaves sockets open when it gives up.
    """
    story = (
        "import sys; from kafka import KafkaProducer; KafkaProducer("
        "bootstrap_servers=sys.argv[1], bootstrap_timeout_ms=2000, "
        "security_protocol='SASL_PLAINTEXT', sasl_mechanism='SCRAM-SHA-256', "
        "sasl_plain_username='alice', sasl_plain_password='wrong')"
    )
    address = serving.listeners["SASL_PLAINTEXT"]
    command = [sys.executable, "-W", "ignore", "-c", story, address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)

    assert done.returncode == 1
    assert "kafka.errors." in done.stderr


def aiokafka_settings(serving: Serving, listener: str, password: str) -> dict[str, Any]:
    """Settings of aiokafka for a listener with SASL."""
    context = ssl.create_default_context(cafile=serving.file("authority.pem"))
    return {
        "bootstrap_servers": serving.listeners[listener],
        "security_protocol": listener,
        "ssl_context": context if listener == "SASL_SSL" else None,
        "sasl_plain_username": USER,
        "sasl_plain_password": password,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_logs_in(serving: Serving, mechanism: str) -> None:
    """The client writes and reads over SASL and TLS."""
    settings = aiokafka_settings(serving, "SASL_SSL", PASSWORD) | {"sasl_mechanism": mechanism}

    async def story() -> str:
        async with asyncio.timeout(LIMIT_S), AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait("orders", b"by aiokafka")
            consumer = AIOKafkaConsumer("orders", **settings, auto_offset_reset="earliest")
            async with consumer:
                record = await consumer.getone()
                return str(record.topic)

    assert asyncio.run(story()) == "orders"


def test_aiokafka_is_told_of_a_wrong_password(serving: Serving) -> None:
    """The client does not start."""
    settings = aiokafka_settings(serving, "SASL_PLAINTEXT", "wrong")

    async def story() -> None:
        producer = AIOKafkaProducer(**settings, sasl_mechanism="PLAIN")
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(KafkaError):
        asyncio.run(story())


def test_log_has_no_password(serving: Serving) -> None:
    """Neither a right nor a wrong one is anywhere in what the server says."""
    said = serving.log.read_text(encoding="utf-8")

    assert "Authentication failed" in said
    assert PASSWORD not in said
    assert "wrong" not in said
