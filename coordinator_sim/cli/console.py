"""Rich's console for names and titles that nobody vouches for."""

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderHook
from rich.segment import Segment

from coordinator_sim.cli.printing import guard_streams, printable


class PrintableConsole(Console):
    """A console that spells control characters out; its own colours stay."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments of a renderable, their text printable."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)

    def print_sentences(self, sentences: Sequence[str]) -> None:
        """Print the sentences that a comparison ends with, apart from what is above them."""
        for sentence in ("", *sentences) if sentences else ():
            self.print(sentence, highlight=False, markup=False, soft_wrap=True)

    def push_render_hook(self, hook: RenderHook) -> None:
        """Start a bar or spinner, and guard the proxies that it has just put before the streams.

        Rich looks for the stream behind one proxy only: behind its own it would find ours, which
        spells out the escapes of the bar. A guard before rich's proxy answers the stream itself.
        """
        super().push_render_hook(hook)
        guard_streams()
