"""What surrounds the REST resources: what real workers of 4.3.1 answered, ours answers.

`tests/data/connect_rest` is recorded by `tools.record_connect_rest`.
"""

import json
import re
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.connect.effects import Died, HttpRequest, HttpResponse, StartConnector
from coordinator_sim.connect.exceptions import ConfigException
from coordinator_sim.connect.settings.config_transformer import ConfigTransformer, with_references
from coordinator_sim.errors import ConfigError
from coordinator_sim.live.config_providers import providers_in, resolved
from coordinator_sim.live.rest_security import credentials
from coordinator_sim_conformance.real_kafka.rest_story import (
    EXTENSION,
    STORIES,
    VARIABLE,
    Exchange,
    trimmed,
    written,
)
from tests.unit.connect.worker_bench import WorkerBench
from tools.record_connect_rest import FOLDER

OTHER_BODIES: Final = {
    "ambiguous path": "a page with a footer; see test_rest",
    "tasks of a worker": "Jackson's own words",
}
"""Exchanges of which only the status and the headers are compared."""
_AT_MS: Final = 1_700_000_000_000


def started(name: str, folder: Path) -> WorkerBench:
    """A worker of ours with the settings of a story, and resources that are in."""
    written(folder)
    story = STORIES[name]
    settings = {key: text.replace("{folder}", str(folder)) for key, text in story.settings.items()}
    if name == "open":
        settings["admin.listeners"] = "http://127.0.0.1:8084"
    providers = providers_in(settings)
    options = f"-Xmx1g -Djava.security.auth.login.config={folder}/jaas.conf"
    bench = WorkerBench(
        resolved(settings, providers),
        credentials=credentials({"KAFKA_OPTS": options}),
        providers=providers,
    )
    bench.now_ms = _AT_MS
    bench.start()
    bench.run(1_000)
    return bench


def creation() -> tuple[Exchange, dict[str, str]]:
    """The request that creates a connector with a reference, and its settings."""
    (created,) = (each for each in STORIES["open"].exchanges if each.name == "referring")
    body: Any = created.body
    return created, body["config"]


def answered(bench: WorkerBench, exchange: Exchange, folder: Path) -> dict[str, Any]:
    """The answer to one request, in the form of the recording."""
    body = b""
    if exchange.body is not None:
        body = json.dumps(exchange.body).replace("{folder}", str(folder)).encode()
    request = HttpRequest(
        method=exchange.method,
        target=exchange.target,
        headers={**exchange.headers, "host": "h:1"},
        body=body,
        scheme="https" if exchange.listener == "https" else "http",
        is_admin=exchange.listener == "admin",
    )
    number = bench.send(request)
    bench.run(3_000)
    response = bench.answers[number]
    text = response.body.decode().replace(str(folder), "{folder}")
    headers = {key: each.replace("http://h:1", "{url}") for key, each in response.headers.items()}
    answer = {
        "status": response.status,
        "headers": headers,
        "body": json.loads(text) if text.startswith(('{"', "[")) else text,
    }
    return trimmed(exchange, answer)


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_answered_as_by_a_real_worker(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status, headers and body of every exchange, in order."""
    monkeypatch.setenv(VARIABLE, "from-env")
    bench = started(name, tmp_path)
    theirs = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    ours = [answered(bench, each, tmp_path) for each in STORIES[name].exchanges]
    for each in (*ours, *theirs):
        if each["name"] in OTHER_BODIES:
            each["body"] = ""
        if each["name"] == "ambiguous path":
            each["headers"].pop("cache-control", None)
    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []


def test_what_is_excused_is_in_a_story() -> None:
    """No excuse outlives its exchange."""
    names = {each.name for story in STORIES.values() for each in story.exchanges}
    assert set(OTHER_BODIES) <= names


def test_a_date_header_counts_from_the_request(tmp_path: Path) -> None:
    """`setDate Expires: 0` is the instant of the answer, in the form of HTTP."""
    bench = started("open", tmp_path)
    response = bench.ask(HttpRequest(method="GET", target="/"))
    assert parsedate_to_datetime(response.headers["expires"]).timestamp() == bench.now_ms // 1_000


def test_a_connector_starts_with_the_values_and_is_written_with_the_references(
    tmp_path: Path,
) -> None:
    """Its topic comes from a file; the config topic has the reference, and so do its tasks."""
    bench = started("open", tmp_path)
    created, _ = creation()
    answered(bench, created, tmp_path)

    (begun,) = (each for each in bench.asked if isinstance(each, StartConnector))
    assert begun.config["topic"] == "from-file"
    reference = f"${{file:{tmp_path}/values.properties:topic}}"
    records = [each.value or b"" for each in bench.topics["connect-configs"]]
    assert sum(reference.encode() in each for each in records) == 2
    assert not any(b"from-file" in each for each in records)


def test_a_connector_whose_values_are_gone_fails(tmp_path: Path) -> None:
    """Its restart finds no file: the request fails with the provider's words."""
    bench = started("open", tmp_path)
    created, _ = creation()
    answered(bench, created, tmp_path)
    (tmp_path / "values.properties").unlink()

    restart = Exchange(name="", method="POST", target="/connectors/referring/restart")
    answer = answered(bench, restart, tmp_path)
    assert answer["status"] == 500
    assert "Could not read properties from file" in answer["body"]["message"]


def test_a_connector_whose_values_are_gone_does_not_end_the_restart_of_its_tasks(
    tmp_path: Path,
) -> None:
    """The worker goes on to answer."""
    bench = started("open", tmp_path)
    created, _ = creation()
    answered(bench, created, tmp_path)
    (tmp_path / "values.properties").unlink()

    target = "/connectors/referring/restart?includeTasks=true"
    assert (
        answered(bench, Exchange(name="", method="POST", target=target), tmp_path)["status"] == 202
    )
    assert not any(isinstance(each, Died) for each in bench.asked)
    assert answered(bench, Exchange(name="", target="/connectors"), tmp_path)["status"] == 200


def test_a_reference_may_stand_for_the_number_of_tasks(tmp_path: Path) -> None:
    """The connector is asked for as many tasks as the provider says."""
    bench = started("open", tmp_path)
    created, config = creation()
    config = {**config, "tasks.max": "${file:{folder}/values.properties:tasks}"}
    answered(bench, replace(created, body={"name": "referring", "config": config}), tmp_path)
    tasks = answered(bench, Exchange(name="", target="/connectors/referring/tasks"), tmp_path)
    assert [each["id"]["task"] for each in tasks["body"]] == [0]


def test_a_connector_that_another_worker_changes_fails_without_its_values(tmp_path: Path) -> None:
    """It is started anew, finds no file, and its status says so."""
    bench = started("open", tmp_path)
    created, config = creation()
    answered(bench, created, tmp_path)
    (tmp_path / "values.properties").unlink()

    config = {**config, "name": "referring", "tasks.max": "1"}
    text = json.dumps({"properties": config}).replace("{folder}", str(tmp_path))
    bench.write("connect-configs", b"connector-referring", text.encode())
    bench.run(3_000)

    status = answered(bench, Exchange(name="", target="/connectors/referring/status"), tmp_path)
    assert status["body"]["connector"]["state"] == "FAILED"
    assert "Could not read properties from file" in status["body"]["connector"]["trace"]


def test_values_are_not_searched_for_references() -> None:
    """What a provider returns stands as it is; a path is asked for once."""
    paths: list[str] = []

    def provider(path: str, keys: frozenset[str]) -> dict[str, str]:
        paths.append(path)
        return dict.fromkeys(keys, "${p:other}")

    found = ConfigTransformer({"p": provider}).transform({"a": "${p:x}${p:y:z}", "b": "${p:w}"})
    assert found == {"a": "${p:other}${p:other}", "b": "${p:other}"}
    assert sorted(paths) == ["", "y"]


_JAVA_PATTERN = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
"""Source: ConfigTransformer.DEFAULT_PATTERN. Its search is cubic in a value without an end."""


@given(st.text("${}:ap", max_size=12))
def test_references_are_those_of_kafkas_pattern(value: str) -> None:
    """Whatever stands around them, and however they are nested."""
    transformer = ConfigTransformer({"a": lambda _path, keys: dict.fromkeys(keys, "!")})

    def replaced(match: re.Match[str]) -> str:
        return "!" if match[1] == "a" else match[0]

    assert transformer.transform({"x": value}) == {"x": _JAVA_PATTERN.sub(replaced, value)}


@pytest.mark.parametrize("value", ["${" + ":" * 300_000, "${" * 300_000, "${" * 300_000 + "}"])
def test_a_long_value_without_a_reference_is_passed_over_once(value: str) -> None:
    """Kafka's pattern needs seven seconds for a thousand colons."""
    assert ConfigTransformer({}).transform({"x": value}) == {"x": value}


def test_only_settings_of_both_get_their_references_back() -> None:
    """A task's own settings stay, and so do those whose connector has a plain value."""
    raw = {"topic": "${p:x}", "file": "f", "other": "${p:y}"}
    task = {"topic": "secret", "file": "g", "task": "1"}
    assert with_references(task, raw) == {"topic": "${p:x}", "file": "g", "task": "1"}


def _basic_auth_options(folder: Path, text: str) -> dict[str, str]:
    (folder / "jaas.conf").write_text(text, "utf-8")
    return {"KAFKA_OPTS": f"-Djava.security.auth.login.config={folder}/jaas.conf"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _: {}, "set KAFKA_OPTS=-Djava.security.auth.login.config=FILE"),
        (lambda folder: _basic_auth_options(folder, "Other { x required; };"), "no entry Kafka"),
        (lambda folder: _basic_auth_options(folder, "KafkaConnect { x.Y required; };"), "x.Y is"),
    ],
)
def test_a_login_configuration_that_cannot_be_used_is_refused(
    make: Callable[[Path], dict[str, str]], words: str, tmp_path: Path
) -> None:
    """One line with what to write instead."""
    with pytest.raises(ConfigError, match=words):
        credentials(make(tmp_path))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rest.extension.classes": "org.x.Y"}, "org.x.Y is not built in; use org.apache"),
        ({"rest.extension.classes": f"{EXTENSION}BasicAuthSecurityRestExtension"}, "no passwords"),
        ({"connector.client.config.override.policy": "Mine"}, "Mine is not built in; use All"),
        ({"access.control.allow.origin": "*.example.org"}, "no regular expression"),
        ({"response.http.headers.config": "put a:b"}, "Invalid header config action: 'put'"),
        ({"response.http.headers.config": "add a b:c"}, "cannot contain whitespace"),
        ({"response.http.headers.config": "add a"}, "Expected: '\\[header name\\]"),
        ({"response.http.headers.config": "add"}, "Invalid format of header config 'add'"),
        ({"response.http.headers.config": "set a:b\nset c:d"}, "Invalid format of header configs"),
        ({"response.http.headers.config": '"set a:b\r\nc"'}, "HTTP allows no such header"),
        ({"response.http.headers.config": "set a:\u017c"}, "HTTP allows no such header"),
        ({"response.http.headers.config": "set a\0:b"}, "HTTP allows no such header"),
        ({"response.http.headers.config": f"setDate a:{10**16}"}, "milliseconds, at most 13"),
    ],
)
def test_a_setting_that_cannot_be_obeyed_ends_the_start(
    settings: dict[str, str], words: str
) -> None:
    """The process ends with one line."""
    bench = WorkerBench(settings).start()
    (died,) = (each for each in bench.asked if isinstance(each, Died))
    assert re.search(words, died.reason)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"class": "org.x.Vault"}, "org.x.Vault is not built in; use one of org.apache.kafka"),
        ({"param.allowed.paths": "here"}, "Path here is not absolute"),
        ({"param.allowed.paths": "/no/such"}, "Path /no/such does not exist"),
    ],
)
def test_a_provider_that_cannot_be_made_is_refused(settings: dict[str, str], words: str) -> None:
    """One line with the name and the bound."""
    known = "org.apache.kafka.common.config.provider.FileConfigProvider"
    own = {
        f"config.providers.p.{name}": text for name, text in {"class": known, **settings}.items()
    }
    with pytest.raises(ConfigError, match=words):
        providers_in({"config.providers": "p", **own})


def test_a_path_that_no_system_takes_is_one_that_cannot_be_read() -> None:
    """A request may name any path; the worker lives on."""
    package = "org.apache.kafka.common.config.provider."
    providers = providers_in(
        {
            "config.providers": "file,directory",
            "config.providers.file.class": f"{package}FileConfigProvider",
            "config.providers.directory.class": f"{package}DirectoryConfigProvider",
        }
    )
    for path in ("/a\0b", "/\ud83d", f"/{'a' * 5_000}"):
        with pytest.raises(ConfigException, match="Could not read properties from file"):
            providers["file"](path, frozenset({"key"}))
        assert providers["directory"](path, frozenset({"key"})) == {}
        assert providers["directory"]("/etc", frozenset({path[1:], "..", "../etc/passwd"})) == {}


def test_a_head_has_the_headers_of_a_get(tmp_path: Path) -> None:
    """Without the body."""
    bench = started("open", tmp_path)
    answers: list[HttpResponse] = [
        bench.ask(HttpRequest(method=each, target="/")) for each in ("GET", "HEAD")
    ]
    assert answers[0].headers == answers[1].headers
    assert answers[1].body == b""
