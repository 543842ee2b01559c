"""What the suite needs to speak to an endpoint: names, addresses, logins, declared facts."""

from pathlib import Path

import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.registry import all_cases
from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.script.answers import Words
from coordinator_sim_conformance.targets.choice import addresses_of
from coordinator_sim_conformance.targets.names import Names
from coordinator_sim_conformance.targets.target import read_declared
from coordinator_sim_conformance.wire.security import security_of


def shouted(name: str) -> str:
    """An endpoint's name."""
    return name.upper()


def test_a_request_and_its_answer_have_their_own_names() -> None:
    """Groups and topics are renamed on the way, subscriptions too; protocols are not."""
    names = Names("")
    metadata = bodies.text(bodies.subscription(["t", "u"], b"range"))
    sent = names.there(
        {"groupId": "g", "protocols": [{"name": "range", "metadata": metadata}]},
        group=shouted,
        topic=shouted,
    )

    assert sent["groupId"] == "G"
    assert sent["protocols"] == [
        {"name": "range", "metadata": bodies.text(bodies.subscription(["T", "U"], b"range"))}
    ]
    came = {"topics": [{"name": "T", "partitions": []}], "groups": [{"groupId": "G"}]}
    assert names.here(came, hosts={}) == {
        "topics": [{"name": "t", "partitions": []}],
        "groups": [{"groupId": "g"}],
    }


def test_groups_of_others_are_not_listed() -> None:
    """The endpoint has other users."""
    names = Names("")
    names.there({"groupId": "g"}, group=shouted, topic=shouted)

    listed = names.here({"groups": [{"groupId": "G"}, {"groupId": "payments"}]}, hosts={})

    assert listed == {"groups": [{"groupId": "g"}]}


def test_metadata_that_is_no_subscription_stays() -> None:
    """Bytes of another protocol are not touched."""
    assert bodies.with_topics(bodies.text(b"\x00\x01abc"), shouted) == bodies.text(b"\x00\x01abc")
    assert bodies.with_topics("", shouted) == ""


@pytest.mark.parametrize("text", ["kafka", ":9092", "kafka:", "kafka:0", "kafka:65536", "a:1,b"])
def test_an_address_without_a_port_is_refused(text: str) -> None:
    """The message names the part that is wrong."""
    with pytest.raises(ConfigError, match="wants HOST:PORT"):
        addresses_of(text)


def test_addresses_may_be_several_and_of_both_kinds() -> None:
    """As `bootstrap.servers` has them."""
    assert addresses_of("a:1, [::1]:2") == [("a", 1), ("::1", 2)]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"security.protocol": "TLS"}, "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanism=GSSAPI: use one of PLAIN"),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            'wants username="..." and password="..."',
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "trust.jks"},
            "ssl.truststore.type=JKS: only PEM",
        ),
        (
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "not-there.pem",
            },
            "certificates of TLS cannot be read",
        ),
    ],
)
def test_a_login_that_cannot_be_is_refused_in_one_line(settings: Words, problem: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigError) as refused:
        security_of(settings)

    assert problem in str(refused.value)


def test_a_password_may_have_quotes_and_backslashes() -> None:
    """As in the JAAS line of a Java client."""
    line = 'org.apache.kafka...PlainLoginModule required username="al\\"ice" password="a\\\\b=,";'
    found = security_of(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": line}
    )

    assert (found.username, found.password) == ('al"ice', "a\\b=,")


def test_what_is_declared_is_read_and_a_misspelt_word_is_named(tmp_path: Path) -> None:
    """A TOML file beside the run."""
    file = tmp_path / "theirs.toml"
    file.write_text('name = "theirs"\n[settings]\n"group.max.size" = 4\n', encoding="utf-8")
    assert read_declared(file).settings == {"group.max.size": 4}

    file.write_text('title = "theirs"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="title"):
        read_declared(file)


def test_a_script_has_lines_for_a_profile_alone() -> None:
    """Brackets name families or profiles; they are gone from the lines."""
    listed = next(case for case in all_cases() if case.case_id == "LIST-001")

    assert any("g.type=classic" in line for line in listed.lines_of("4.4"))
    assert not any("g.type=classic" in line for line in listed.lines_of("3.9"))
    assert not any(line.startswith("[") for line in listed.lines_of("2.8"))
