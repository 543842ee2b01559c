"""How both command lines read options: none is overwritten or refused for its position in silence.

- An option whose metavar ends in `,...` takes several values: separated by commas, or by the option
  again.
- Any other option that is no list is refused the second time.
- Options of a group of commands, such as `ctl --url`, may also follow the command.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from coordinator_sim.errors import ConfigError

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Context = Any
_Option = Any
"""Classes of click's, of which typer has a copy of its own from 0.27 on."""


class _Reading:
    """Reads the words behind a command; the base of commands and of groups of them."""

    def make_parser(self: Any, ctx: _Context) -> Any:  # noqa: ANN401 - private to typer
        """A parser that knows the options of the groups around the command, too."""
        parser = super().make_parser(ctx)  # type: ignore[misc] # a base beside it has it
        for _, option in _options_around(ctx):
            option.add_to_parser(parser, ctx)
        return parser

    def parse_args(self: Any, ctx: _Context, args: list[str]) -> list[str]:
        """Read the words once for what comes several times, and then as typer does.

        Raises:
            ConfigError: An option with a single value is there twice.
        """
        parser = self.make_parser(ctx)
        joined = [option for option in self.get_params(ctx) if _takes_several(option)]
        for option in joined:
            parser.add_option(obj=option, opts=option.opts, dest=option.name, action="append")
        found, _, order = parser.parse_args(args=[*args])
        _check_single(order)
        rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc] # a base beside it has it
        for option in joined:
            if option in order:
                ctx.params[option.name] = ",".join(found[option.name])
        for group, option in _options_around(ctx):
            if option in order:
                _set_around(ctx, group, option, found)
        return rest


class _Command(_Reading, TyperCommand):
    """A command."""


class CommandGroup(_Reading, TyperGroup):
    """A group of commands."""


class CommandLine(typer.Typer):
    """A `Typer` whose commands and groups read their options as the module says.

    Args:
        options: Those of `Typer`.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as Typer takes them
        fixed: dict[str, Any] = {
            "cls": CommandGroup,
            "add_completion": False,
            "pretty_exceptions_enable": False,
            "rich_markup_mode": None,
        }
        super().__init__(**(fixed | options))

    def command(
        self,
        name: str | None = None,
        **options: Any,  # noqa: ANN401 - as Typer takes them
    ) -> Callable[[_Function], _Function]:
        """Make a command of a function."""
        return super().command(name, cls=_Command, **options)


def _takes_several(option: _Option) -> bool:
    return not option.multiple and str(getattr(option, "metavar", "")).endswith(",...")


def _options_around(ctx: _Context) -> Iterator[tuple[_Context, _Option]]:
    """The options of the groups around a command that it has not itself, with their contexts."""
    own = {name for option in ctx.command.get_params(ctx) for name in option.opts}
    while (ctx := ctx.parent) is not None:
        for option in ctx.command.get_params(ctx):
            is_value = option.param_type_name == "option" and not option.is_eager
            if is_value and own.isdisjoint(option.opts):
                yield ctx, option


def _check_single(order: list[_Option]) -> None:
    for option, count in Counter(order).items():
        is_switch = getattr(option, "is_flag", True) and not option.secondary_opts
        if count > 1 and not (option.multiple or is_switch or _takes_several(option)):
            raise ConfigError(f"{option.opts[0]} is there {count} times: give it once")


def _set_around(ctx: _Context, group: _Context, option: _Option, found: dict[str, Any]) -> None:
    """Let a group read an option that follows its command, and call the group's function again."""
    if getattr(group.get_parameter_source(option.name), "name", "") == "COMMANDLINE":
        raise ConfigError(f"{option.opts[0]} is there before and after the command: give it once")
    option.handle_parse_result(group, found, [])
    group.invoke(group.command.callback, **group.params)
    while ctx is not group:
        ctx.obj = group.obj
        ctx = ctx.parent
