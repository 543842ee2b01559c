"""References to values of providers in settings: `${provider:key}` and `${provider:path:key}`.

The providers themselves read files and the environment; a driver brings them.

Source: kafka 4.3, clients/.../common/config/ConfigTransformer.java; connect/runtime/...
/WorkerConfigTransformer.java, AbstractHerder.reverseTransform.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from coordinator_sim.connect.settings.config_def import Properties

_REFERENCE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")

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

    __slots__ = ("_providers",)

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
            for name, path, key in _REFERENCE.findall(value or ""):
                if name in self._providers:
                    keys_by_path.setdefault((name, path), set()).add(key)
        found = {
            (name, path): self._providers[name](path, frozenset(keys))
            for (name, path), keys in keys_by_path.items()
        }

        def replaced(match: re.Match[str]) -> str:
            name, path, key = match[1], match[2] or "", match[3]
            return found.get((name, path), {}).get(key, match[0])

        return {
            name: None if value is None else _REFERENCE.sub(replaced, value)
            for name, value in config.items()
        }


def with_references(config: Mapping[str, str], raw: Mapping[str, str]) -> dict[str, str]:
    """Return a task's settings with the references of its connector's, where both have a name.

    So a value that a provider keeps secret is not written to the config topic.

    Source: AbstractHerder.reverseTransform.
    """
    references = {name: raw[name] for name in config if _REFERENCE.search(raw.get(name, ""))}
    return {**config, **references}
