"""Imports modules with a line changed."""

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import coordinator_sim
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


def broken_sources(exhibits: Sequence[Exhibit]) -> dict[str, str]:
    """The source of every module that the exhibits change, by its name; faults in the order given.

    Raises:
        ConfigError: two of them change one line, or a module is not what an exhibit quotes.
    """
    sources: dict[str, str] = {}
    for exhibit in exhibits:
        if exhibit.module in sources and exhibit.before not in sources[exhibit.module]:
            others = ", ".join(
                other.exhibit_id for other in exhibits if other.module == exhibit.module
            )
            raise ConfigError(f"{others} change the same line: choose one of them")
        source = sources.get(exhibit.module) or source_of(exhibit.module)
        sources[exhibit.module] = broken_source(exhibit, source)
    return sources


def source_of(module: str) -> str:
    """The source of a module of the library, read without importing it."""
    return path_of(module).read_text(encoding="utf-8")


def path_of(module: str) -> Path:
    """The file of a module of the library."""
    parts = module.split(".")[1:]
    return Path(str(coordinator_sim.__file__)).parent.joinpath(*parts).with_suffix(".py")


class _BrokenLoader(SourceFileLoader):
    """Compiles the changed source; never reads or writes a cache."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        """The code of the module with the fault in it."""
        return compile(self._source, self.get_filename(fullname), "exec", dont_inherit=True)


class _BrokenFinder(MetaPathFinder):
    """Finds the modules of the exhibits."""

    def __init__(self, exhibits: tuple[Exhibit, ...], sources: Mapping[str, str]) -> None:
        self.exhibits = exhibits
        self._sources = sources

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let every other module be found as ever."""
        source = self._sources.get(fullname)
        if source is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _BrokenLoader(fullname, spec.origin, source)
        return spec


def install(*exhibits: Exhibit) -> None:
    """From now on in this process, import the exhibits' modules with their faults in them.

    Raises:
        ConfigError: a module is imported already, so that it is too late; or two exhibits change
            one line.
    """
    late = [exhibit.module for exhibit in exhibits if exhibit.module in sys.modules]
    if late:
        raise ConfigError(f"{late[0]} is imported already: break it in a fresh process")
    sys.meta_path.insert(0, _BrokenFinder(exhibits, broken_sources(exhibits)))


def installed() -> tuple[Exhibit, ...]:
    """The exhibits that this process imports its modules with."""
    finders = [finder for finder in sys.meta_path if isinstance(finder, _BrokenFinder)]
    return tuple(exhibit for finder in finders for exhibit in finder.exhibits)
