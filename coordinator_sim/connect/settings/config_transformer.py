"""References to values of providers in settings: `${provider:key}` and `${provider:path:key}`.

The providers themselves read files and the environment; a driver brings them.

Source: kafka 4.3, clients/.../common/config/ConfigTransformer.java; connect/runtime/...
/WorkerConfigTransformer.java, AbstractHerder.reverseTransform.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from coordinator_sim.connect.settings.config_def import Properties

_BRACES: Final = re.compile(r"\$\{([^}]*)\}")

Provider = Callable[[str, frozenset[str]], Mapping[str, str]]
"""Takes a path, empty for none, and keys; returns the values that there are.

Raises:
    ConfigException: the path cannot be read.
"""


class ConfigTransformer:
    """Replaces references by the values of providers.

    Args:
        providers: Providers by the names that references use.
    """

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._providers = providers

    def transform(self, config: Properties) -> dict[str, str | None]:
        """Return settings with every reference replaced that a provider has a value for.

        Each provider is asked once for the keys of a path; values are not searched again.

        Raises:
            ConfigException: a provider cannot read a path.
        """
        keys_by_path: dict[tuple[str, str], set[str]] = {}
        for value in config.values():
            for match in _BRACES.finditer(_head(value or "")):
                name, path, key = _parts(match)
                if name in self._providers:
                    keys_by_path.setdefault((name, path), set()).add(key)
        found = {
            (name, path): self._providers[name](path, frozenset(keys))
            for (name, path), keys in keys_by_path.items()
        }

        def replaced(match: re.Match[str]) -> str:
            name, path, key = _parts(match)
            return found.get((name, path), {}).get(key, match[0])

        def resolved(value: str) -> str:
            head = _head(value)
            return _BRACES.sub(replaced, head) + value[len(head) :]

        return {name: value and resolved(value) for name, value in config.items()}


def _head(value: str) -> str:
    """A value up to its last closing brace, so that a search for braces is one pass over it."""
    return value[: value.rfind("}") + 1]


def _parts(braces: re.Match[str]) -> tuple[str, str, str]:
    """Provider, path and key of a reference; three empty texts where braces hold none."""
    name, *rest = braces[1].split(":", 2)
    if not rest:
        return "", "", ""
    return name, rest[0] if len(rest) > 1 else "", rest[-1]


def with_references(config: Mapping[str, str], raw: Mapping[str, str]) -> dict[str, str]:
    """Return a task's settings with the references of its connector's, where both have a name.

    So a value that a provider keeps secret is not written to the config topic.

    Source: AbstractHerder.reverseTransform.
    """
    references = {name: raw[name] for name in config if _has_reference(raw.get(name, ""))}
    return {**config, **references}


def _has_reference(value: str) -> bool:
    return any(":" in braces[1] for braces in _BRACES.finditer(_head(value)))
