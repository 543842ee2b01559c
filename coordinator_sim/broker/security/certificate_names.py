"""A TLS client's principal: the certificate's subject as Java writes it, shortened by rules.

Source: RFC 2253; kafka trunk, clients/.../security/ssl/SslPrincipalMapper.java,
DefaultKafkaPrincipalBuilder.java; javax.security.auth.x500.X500Principal.getName.
"""

import re
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import INVALID_PATTERN, ConfigError

Subject = tuple[tuple[tuple[str, str], ...], ...]
"""RDNs in certificate order, as Python's `ssl` gives them: name and value of each attribute."""

_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_NUMBERED: Final = {
    "emailAddress": ("1.2.840.113549.1.9.1", 0x16),
    "serialNumber": ("2.5.4.5", 0x13),
    "surname": ("2.5.4.4", 0x0C),
    "title": ("2.5.4.12", 0x0C),
    "givenName": ("2.5.4.42", 0x0C),
    "dnQualifier": ("2.5.4.46", 0x13),
}
"""Attributes without a short name in RFC 2253: their OID, and the tag of their DER encoding."""
_SHORT_DER: Final = 128
_SPECIAL: Final = re.compile(r'([,+"\\<>;])')
_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<to>(?:\\.|[^\\/])*)/"
    r"(?P<case>[LU]?))\s*(?:,|$)"
)
_REFERENCE: Final = re.compile(r"\$(\d+)")


def distinguished_name(subject: Subject) -> str:
    """A certificate's subject as text, the last RDN first."""
    return ",".join(
        "+".join(_part(name, value) for name, value in parts) for parts in reversed(subject)
    )


def _part(name: str, value: str) -> str:
    short = _SHORT.get(name)
    if short is not None:
        return f"{short}={_escaped(value)}"
    number, kind = _NUMBERED.get(name, (name, 0x0C))
    data = value.encode()
    if len(data) >= _SHORT_DER:
        return f"{number}={_escaped(value)}"
    return f"{number}=#{bytes((kind, len(data))).hex()}{data.hex()}"


def _escaped(value: str) -> str:
    text = _SPECIAL.sub(r"\\\1", value)
    if text.startswith(("#", " ")):
        text = f"\\{text}"
    if text.endswith(" ") and len(text) > 1:
        text = f"{text[:-1]}\\ "
    return text


class _Rule(Struct, frozen=True):
    pattern: re.Pattern[str] | None
    to: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        found = self.pattern.sub(self._replaced, name)
        return {"L": found.lower(), "U": found.upper()}.get(self.case, found)

    def _replaced(self, match: re.Match[str]) -> str:
        """The rule's replacement for a match; a reference to a missing group stays as it is."""

        def group(reference: re.Match[str]) -> str:
            index = int(reference[1])
            return (match[index] or "") if index <= match.re.groups else reference[0]

        return _REFERENCE.sub(group, self.to.replace("\\/", "/"))


class PrincipalRules:
    """`ssl.principal.mapping.rules`.

    Args:
        text: Rules separated by commas; the first that matches counts.

    Raises:
        ConfigError: a rule has a wrong syntax.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule] = []
        rest = text.strip()
        while rest:
            found = _RULE.match(rest)
            if found is None:
                raise ConfigError(f"ssl.principal.mapping.rules: {rest!r} is no rule")
            try:
                pattern = None if found["default"] else re.compile(found["pattern"])
            except INVALID_PATTERN as error:
                text = f"ssl.principal.mapping.rules: {found['pattern']!r} is no pattern: {error}"
                raise ConfigError(text) from error
            self._rules.append(_Rule(pattern, found["to"] or "", found["case"] or ""))
            rest = rest[found.end() :].strip()

    def principal(self, subject: Subject) -> str | None:
        """The principal of a certificate's subject; None when no rule matches."""
        name = distinguished_name(subject)
        for rule in self._rules:
            found = rule.apply(name)
            if found is not None:
                return f"User:{found}"
        return None
