"""Puts a fault into functions that are loaded already: their code is replaced, nothing imported.

Whoever holds a function, in a table or under another name, then calls the changed one.
"""

import gc
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from inspect import CO_OPTIMIZED
from types import CodeType, FunctionType
from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.museum.breaking import path_of

_CACHED: Final = type(cache(lambda: None))
Place = tuple[str, int]
"""A code's qualified name and first line."""


class LoadedFunctions:
    """The functions of some modules that this process has loaded, by their place.

    Args:
        modules: Names of imported modules.
    """

    def __init__(self, modules: Iterable[str]) -> None:
        names = frozenset(modules)
        paths = {str(path_of(module)) for module in names}
        self._functions: dict[tuple[str, Place], list[FunctionType]] = {}
        self._caches: list[Callable[[], None]] = []
        for found in gc.get_objects():
            if isinstance(found, FunctionType) and found.__code__.co_filename in paths:
                key = (found.__code__.co_filename, _place(found.__code__))
                self._functions.setdefault(key, []).append(found)
            elif isinstance(found, _CACHED) and found.__module__ in names:
                self._caches.append(found.cache_clear)

    def put(self, module_code: CodeType, name: str) -> None:
        """Replace the code of every function that differs in a module's code; clear its caches.

        Args:
            module_code: The code of the changed module, compiled with its path.
            name: The change, for the message.

        Raises:
            DataError: no loaded function differs.
        """
        changed = 0
        for code in _codes(module_code):
            for function in self._functions.get((code.co_filename, _place(code)), ()):
                if function.__code__ != code:
                    function.__code__ = code
                    changed += 1
        if not changed:
            raise DataError(f"{name}: no function of it is loaded")
        for clear in self._caches:
            clear()


def differ_in_functions_alone(one: CodeType, other: CodeType) -> bool:
    """Whether two codes of a module execute the same on import, and have the same functions."""
    return list(_skeleton(one)) == list(_skeleton(other))


def _skeleton(code: CodeType) -> Iterator[tuple[object, ...]]:
    """The code of the module and of its classes; of functions the name and the free variables."""
    if code.co_flags & CO_OPTIMIZED:
        yield code.co_qualname, code.co_freevars
        return
    constants = [(type(each), each) for each in code.co_consts if not isinstance(each, CodeType)]
    yield code.co_qualname, code.co_code, code.co_names, constants
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _skeleton(each)


def _place(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
