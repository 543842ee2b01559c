"""Files of settings as people keep them: properties, Spring Boot's names, containers' environments.

What is read is a client's settings by Kafka's names, with the name that each has in the file.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.client_kind import ClientKind, kind_of_settings
from coordinator_sim.clients.settings_advice import CONSUMER_NAMES
from coordinator_sim.clients.streams_advice import STREAMS_NAMES
from coordinator_sim.connect.settings.worker_config import parse_properties
from coordinator_sim.connect.settings.worker_settings import PASSED_ON_PREFIXES, WORKER_CONFIG_DEF
from coordinator_sim.errors import DataError, MissingDependencyError

_SPRING: Final = "spring.kafka."
_SPRING_VARIABLE: Final = "SPRING_KAFKA_"
_BRACKETS: Final = re.compile(r"\.?\[\"?([^\]\"]+)\"?\]")
_SECTIONS: Final = ("properties.", "consumer.", "consumer.properties.")
_OF_STREAMS: Final = ("properties.", "streams.", "streams.properties.")
"""Spring Boot's sections of a client, each above the one before."""
_ENVIRONMENT: Final = re.compile(r"(?P<prefix>CONNECT_|KAFKA_|)(?P<name>[A-Z][A-Z0-9_]*)")
"""A setting of a container: of Connect's images, of a broker's, or, as in Debezium's, of none."""
_LINE: Final = re.compile(
    r"^[ \t]*(?:-[ \t]+|-e[ \t]+|export[ \t]+|ENV[ \t]+)?(?P<quote>[\"']?)"
    r"(?P<key>[A-Z][A-Z0-9_]*)[ \t]*[=:][ \t]*(?P<value>.*?)(?P=quote)[ \t]*\\?$",
    re.MULTILINE,
)
"""A line of an environment: `KEY=value`, `- KEY=value`, `KEY: value`, `export KEY=value`."""
_PLACEHOLDER: Final = re.compile(r"\$\{[^}:]*(?::-?(?P<default>[^}]*))?\}")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LENGTH: Final = re.compile(r"(?:PT)?(\d+)(ms|s|m|h|d)", re.IGNORECASE)
"""A length of time as Spring Boot reads it."""
_KNOWN: Final = CONSUMER_NAMES | STREAMS_NAMES | WORKER_CONFIG_DEF.keys.keys()
_SQUEEZED: Final = {
    squeezed: name
    for name in sorted(_KNOWN)
    for squeezed in (name.replace(".", ""), name.removesuffix(".ms").replace(".", ""))
}
_NEAR: Final = 0.87
_PREFIXES: Final = (*PASSED_ON_PREFIXES, "main.consumer.", "restore.consumer.", "global.consumer.")
_MOST_VALUES: Final = 100_000
"""Values of a YAML file, aliases expanded."""


class SettingsFile(Struct, frozen=True):
    """Settings of one client.

    Args:
        settings: Values by Kafka's names.
        written: By Kafka's name the one in the file, for those that are written in another form.
        kind: Whose settings they are, by their names.
    """

    settings: dict[str, str]
    written: dict[str, str]
    kind: ClientKind


def read_settings(file: Path) -> SettingsFile:
    """Read a file of settings, in whichever form they are.

    Spring Boot's and environments' names that are none of Kafka's are left out: they are for
    somebody else. So are values that only the environment knows, such as `${GROUP}`.

    Raises:
        DataError: A YAML file is none.
        MissingDependencyError: It is YAML, and the package that reads it is not installed.
        OSError: The file cannot be read.
    """
    text = file.read_text("utf-8", errors="replace")
    if file.suffix in {".yml", ".yaml"}:
        found = {
            name: value
            for name, value in _of_yaml(file, text)
            if _is_kafkas(name) or name.startswith(_SPRING) or _ENVIRONMENT.fullmatch(name)
        }
    else:
        plain = _LINE.sub("", text)
        found = {**parse_properties(plain), **_of_lines(text)}
    return settings_of(found)


def settings_of(found: Mapping[str, str]) -> SettingsFile:
    """Return the settings of a client among names and values of any form."""
    settings: dict[str, str] = {}
    written: dict[str, str] = {}
    for name, kafkas, text in _translated(found):
        value = _PLACEHOLDER.sub(lambda match: match["default"] or "", text)
        if not value and text:
            continue
        settings[kafkas] = value
        if kafkas != name:
            written[kafkas] = name
        else:
            written.pop(kafkas, None)
    if any(_bound(name).startswith(f"{_SPRING}consumer.") for name in found):
        # Spring's containers commit by themselves unless this is set.
        settings.setdefault("enable.auto.commit", "false")
    return SettingsFile(settings, written, kind_of_settings(settings))


def _translated(found: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield names in the file with Kafka's names and values; what counts more comes later."""
    bound = {name: _bound(name) for name in found}
    is_spring = any(name.startswith(_SPRING) for name in bound.values())
    for name, value in found.items():
        match = _ENVIRONMENT.fullmatch(name)
        if match is not None:
            kafkas = _from_environment(match["name"])
            if _is_kafkas(kafkas) or (match["prefix"] and _is_close(kafkas)):
                yield name, kafkas, value
        elif not is_spring:
            yield name, name, value
    of_consumer = any(name.startswith(f"{_SPRING}consumer.") for name in bound.values())
    for section in _SECTIONS if of_consumer else (*_SECTIONS, *_OF_STREAMS[1:]):
        for name, value in found.items():
            own = bound[name].removeprefix(_SPRING + section)
            if own == bound[name] or own.startswith("properties."):
                continue
            is_verbatim = section.endswith("properties.")
            kafkas = own if is_verbatim else _from_spring(own)
            if _is_kafkas(kafkas) or (is_verbatim and _is_close(kafkas)):
                yield name, kafkas, _spring_value(kafkas, value)


def _bound(name: str) -> str:
    """Return a name as Spring Boot binds it: from a variable, or with a key in brackets."""
    if name.startswith(_SPRING_VARIABLE):
        return _SPRING + name.removeprefix(_SPRING_VARIABLE).lower().replace("_", ".")
    return _BRACKETS.sub(r".\1", name)


def _is_kafkas(name: str) -> bool:
    return name in _KNOWN or name.startswith(_PREFIXES)


def _is_close(name: str) -> bool:
    """Whether a name may be a misspelt one of Kafka's."""
    return bool(get_close_matches(name, _KNOWN, n=1, cutoff=_NEAR))


def _from_environment(name: str) -> str:
    """Return the setting of a variable. Source: the README of Kafka's Docker image."""
    marks = {"_": ".", "__": "_", "___": "-"}
    return re.sub(r"_{1,3}", lambda match: marks[match[0]], name.lower())


def _from_spring(name: str) -> str:
    """Return Kafka's name of one of Spring's own, as `max-poll-interval` or `groupId`."""
    dotted = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower().replace("-", ".").replace("_", ".")
    forms = (dotted, f"{dotted}.ms", re.sub(r"\.size$", ".bytes", dotted))
    told = next((form for form in forms if form in _KNOWN), None)
    # A variable cannot tell where the words of a name end.
    return told or _SQUEEZED.get(dotted.replace(".", ""), dotted)


def _spring_value(name: str, value: str) -> str:
    length = _LENGTH.fullmatch(value.strip())
    if name.endswith(".ms") and length is not None:
        return str(int(length[1]) * _UNITS_MS[length[2].lower()])
    return value.lower().replace("-", "_") if name == "isolation.level" else value


def _of_lines(text: str) -> dict[str, str]:
    return {match["key"]: match["value"].strip("\"'") for match in _LINE.finditer(text)}


def yaml_documents(file: Path, text: str) -> list[object]:
    """Return the documents of a YAML file, which with its aliases is not too large.

    Raises:
        DataError: The file is no YAML, or too large.
        MissingDependencyError: The package that reads it is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise MissingDependencyError(
            f"{file}: YAML needs the package 'pyyaml': pip install pyyaml"
        ) from None
    try:
        documents: list[object] = list(yaml.safe_load_all(text))
        _check_size(documents, iter(range(_MOST_VALUES)))
    except yaml.YAMLError as error:
        raise DataError(f"{file}: no YAML: {str(error).splitlines()[0]}") from None
    except (_TooMany, RecursionError):
        raise DataError(
            f"{file}: with its aliases it has more than {_MOST_VALUES:,} values, or they are "
            "nested too deeply; give a smaller file"
        ) from None
    return documents


def _of_yaml(file: Path, text: str) -> Iterator[tuple[str, str]]:
    """Yield the values of a YAML file with the dotted path of each, or a variable's name."""
    for document in yaml_documents(file, text):
        yield from _flat(document, "")


class _TooMany(Exception):
    """A YAML file has too many values once its aliases are expanded."""


def _check_size(node: object, room: Iterator[int]) -> None:
    if next(room, None) is None:
        raise _TooMany
    if isinstance(node, dict | list):
        for each in node.values() if isinstance(node, dict) else node:
            _check_size(each, room)


def _flat(node: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        for key, value in node.items():
            name = str(key)
            is_setting = name in _KNOWN and not path.startswith("spring")
            is_alone = not path or is_setting or _ENVIRONMENT.fullmatch(name) is not None
            yield from _flat(value, name if is_alone else f"{path}.{name}")
    elif isinstance(node, list):
        for item in node:
            key, equals, value = item.partition("=") if isinstance(item, str) else ("", "", "")
            if equals:
                yield key, value
    elif node is not None:
        yield path, str(node).lower() if isinstance(node, bool) else str(node)
