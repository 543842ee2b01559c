"""Kafka's own providers of settings: values in files, in directories and in the environment.

Source: kafka 4.3, clients/.../common/config/provider/{File,Directory,EnvVar}ConfigProvider.java,
internals/AllowedPaths.java; AbstractConfig.instantiateConfigProviders.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from coordinator_sim.connect.exceptions import ConfigException
from coordinator_sim.connect.settings.config_transformer import ConfigTransformer, Provider
from coordinator_sim.connect.settings.worker_config import parse_properties
from coordinator_sim.errors import ConfigError

_PACKAGE: Final = "org.apache.kafka.common.config.provider."
_Params = Mapping[str, str]


def providers_in(properties: Mapping[str, str]) -> dict[str, Provider]:
    """Return the providers that a worker's settings name, by their names there.

    Raises:
        ConfigError: a class is not one of Kafka's own, or a parameter of one is invalid.
    """
    found: dict[str, Provider] = {}
    for name in _names(properties.get("config.providers", "")):
        prefix = f"config.providers.{name}."
        class_name = properties.get(f"{prefix}class")
        if class_name is None:
            continue
        make = _BUILT_IN.get(class_name.removeprefix(_PACKAGE))
        if make is None:
            listed = ", ".join(_PACKAGE + each for each in _BUILT_IN)
            raise ConfigError(f"{prefix}class={class_name} is not built in; use one of {listed}")
        params = {
            key.removeprefix(f"{prefix}param."): value
            for key, value in properties.items()
            if key.startswith(f"{prefix}param.")
        }
        found[name] = make(params)
    return found


def resolved(properties: Mapping[str, str], providers: Mapping[str, Provider]) -> dict[str, str]:
    """Return a worker's settings with the values that they refer to.

    Raises:
        ConfigError: a provider cannot read a path.
    """
    try:
        found = ConfigTransformer(providers).transform(properties)
    except ConfigException as error:
        raise ConfigError(error.message) from None
    return {name: value for name, value in found.items() if value is not None}


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _allowed_paths(params: _Params) -> Callable[[str], Path | None]:
    """Return what makes a path of a text, and None of one outside `allowed.paths`.

    Raises:
        ConfigError: one of these is not absolute, or does not exist.
    """
    allowed = [Path(os.path.normpath(each)) for each in _names(params.get("allowed.paths", ""))]
    for each in allowed:
        if not each.is_absolute():
            raise ConfigError(f"Path {each} is not absolute")
        if not each.exists():
            raise ConfigError(f"Path {each} does not exist")

    def parse(text: str) -> Path | None:
        path = Path(os.path.normpath(text))
        is_inside = any(path.is_relative_to(each) for each in allowed)
        return path if is_inside or not allowed else None

    return parse


def _file_provider(params: _Params) -> Provider:
    """Values of a properties file in UTF-8."""
    parse = _allowed_paths(params)

    def get(path: str, keys: frozenset[str]) -> Mapping[str, str]:
        file = parse(path) if path else None
        if file is None:
            return {}
        try:
            found = parse_properties(file.read_text("utf-8"))
        except (OSError, ValueError):
            raise ConfigException(f"Could not read properties from file {path}") from None
        return _picked(found, keys)

    return get


def _directory_provider(params: _Params) -> Provider:
    """Contents of the files in a directory, by their names."""
    parse = _allowed_paths(params)

    def get(path: str, keys: frozenset[str]) -> Mapping[str, str]:
        directory = parse(path) if path else None
        if directory is None:
            return {}
        return {key: _content(directory / key) for key in keys if _is_file_in(directory, key)}

    return get


def _is_file_in(directory: Path, name: str) -> bool:
    try:
        return bool(name) and Path(name).name == name and (directory / name).is_file()
    except OSError:  # The system does not take such a name.
        return False


def _content(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        text = f"Could not read file {file} for property {file.name}"
        raise ConfigException(text) from None


def _environment_provider(params: _Params) -> Provider:
    """Variables of the process, those whose whole name a pattern matches."""
    pattern = params.get("allowlist.pattern", ".*")
    try:
        allowed = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"allowlist.pattern={pattern}: no regular expression: {error}") from None
    variables = {name: text for name, text in os.environ.items() if allowed.fullmatch(name)}

    def get(path: str, keys: frozenset[str]) -> Mapping[str, str]:
        if path:
            raise ConfigException(
                f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'"
            )
        return _picked(variables, keys)

    return get


def _picked(found: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    return {key: found[key] for key in keys if key in found}


_BUILT_IN: Final[dict[str, Callable[[_Params], Provider]]] = {
    "FileConfigProvider": _file_provider,
    "DirectoryConfigProvider": _directory_provider,
    "EnvVarConfigProvider": _environment_provider,
}
"""Kafka's classes, without their package."""
