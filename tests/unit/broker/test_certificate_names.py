"""Principals of certificates: names as Java writes them, and rules that shorten them."""

import pytest

from coordinator_sim.broker.security.certificate_names import PrincipalRules, distinguished_name
from coordinator_sim.errors import ConfigError

ALICE = ((("countryName", "DE"),), (("organizationName", "Acme, Inc"),), (("commonName", "Alice"),))


def test_last_part_comes_first_and_commas_are_escaped() -> None:
    """A distinguished name is written as in RFC 2253."""
    assert distinguished_name(ALICE) == r"CN=Alice,O=Acme\, Inc,C=DE"


def test_part_without_letters_is_its_number() -> None:
    """An address is written as the bytes of its encoding."""
    subject = ((("emailAddress", "a@b"),), (("commonName", "x"),))

    assert distinguished_name(subject) == "CN=x,1.2.840.113549.1.9.1=#1603614062"


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("DEFAULT", r"User:CN=Alice,O=Acme\, Inc,C=DE"),
        ("RULE:^CN=(.*?),.*$/$1/", "User:Alice"),
        ("RULE:^CN=(.*?),.*$/$1/L", "User:alice"),
        ("RULE:^CN=(.*?),.*$/$1@$2/U, DEFAULT", "User:ALICE@$2"),
        ("RULE:^OU=x$/y/, RULE:^.*C=(..)$/$1/L", "User:de"),
        ("RULE:^OU=x$/y/", None),
    ],
)
def test_first_rule_that_matches_counts(rules: str, principal: str | None) -> None:
    """Groups, letter cases, the name itself; nothing when no rule matches."""
    assert PrincipalRules(rules).principal(ALICE) == principal


def test_text_that_is_no_rule_is_named() -> None:
    """The error repeats it."""
    with pytest.raises(ConfigError, match="RULE:broken"):
        PrincipalRules("RULE:broken")
