"""Puts a mutant into functions that are loaded already: their code is replaced, nothing imported.

Whoever holds a function, in a table or under another name, then calls the changed one.
"""

import gc
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.museum.breaking import path_of
from coordinator_sim_conformance.mutants.generation import code_with
from coordinator_sim_conformance.mutants.mutant import Mutant

_CACHED: Final = type(cache(lambda: None))
Place = tuple[str, int]
"""A code's qualified name and first line."""


class LoadedFunctions:
    """The functions of some modules that this process has loaded, by their place.

    Args:
        modules: Names of imported modules.
    """

    def __init__(self, modules: tuple[str, ...]) -> None:
        paths = {str(path_of(module)) for module in modules}
        self._functions: dict[tuple[str, Place], list[FunctionType]] = {}
        self._caches: list[Callable[[], None]] = []
        for found in gc.get_objects():
            if isinstance(found, FunctionType) and found.__code__.co_filename in paths:
                key = (found.__code__.co_filename, _place(found.__code__))
                self._functions.setdefault(key, []).append(found)
            elif isinstance(found, _CACHED) and found.__module__ in modules:
                self._caches.append(found.cache_clear)

    def put(self, mutant: Mutant) -> None:
        """Replace the code of every function that the mutant changes, and forget cached results.

        Raises:
            DataError: no loaded function has the mutant's code.
        """
        path = str(path_of(mutant.module))
        changed = 0
        for code in _codes(code_with(mutant)):
            for function in self._functions.get((path, _place(code)), ()):
                if function.__code__ != code:
                    function.__code__ = code
                    changed += 1
        if not changed:
            raise DataError(f"{mutant.mutant_id}: no function of it is loaded")
        for clear in self._caches:
            clear()


def _place(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
