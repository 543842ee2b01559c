"""Imports a module with one line changed."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.museum.exhibit import Exhibit


def broken_source(exhibit: Exhibit, source: str) -> str:
    """The module's source with the fault in it.

    Raises:
        ConfigError: the text to replace does not stand there exactly once.
    """
    if not exhibit.before:
        return source
    count = source.count(exhibit.before)
    if count != 1:
        raise ConfigError(
            f"{exhibit.exhibit_id}: {exhibit.module} holds {exhibit.before!r} {count} times, not 1"
        )
    return source.replace(exhibit.before, exhibit.after)


class _BrokenLoader(SourceFileLoader):
    """Compiles the changed source; never reads or writes a cache."""

    def __init__(self, name: str, path: str, exhibit: Exhibit) -> None:
        super().__init__(name, path)
        self._exhibit = exhibit

    def get_code(self, fullname: str) -> CodeType:
        """The code of the module with the fault in it."""
        path = Path(self.get_filename(fullname))
        source = broken_source(self._exhibit, path.read_text(encoding="utf-8"))
        return compile(source, str(path), "exec", dont_inherit=True)


class _BrokenFinder(MetaPathFinder):
    """Finds the one module of the exhibit."""

    def __init__(self, exhibit: Exhibit) -> None:
        self._exhibit = exhibit

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let every other module be found as ever."""
        if fullname != self._exhibit.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _BrokenLoader(fullname, spec.origin, self._exhibit)
        return spec


def install(exhibit: Exhibit) -> None:
    """From now on in this process, import the exhibit's module with the fault in it.

    Raises:
        ConfigError: the module is imported already, so that it is too late.
    """
    if exhibit.module in sys.modules:
        raise ConfigError(f"{exhibit.module} is imported already: break it in a fresh process")
    sys.meta_path.insert(0, _BrokenFinder(exhibit))
