"""What all pages share: their templates, stylesheet and script, and filters for values."""

from functools import partial
from pathlib import Path
from typing import Final

import jinja2
from markupsafe import Markup

from coordinator_sim_reports import formats

_TEMPLATES: Final = Path(__file__).parent / "templates"


def page_environment() -> jinja2.Environment:
    """Return the environment of all pages: their templates, and filters for values.

    `style` and `script` are the stylesheet and the script of all pages, `range_script` is that of
    pages with a range.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        count=formats.format_count,
        decimal=formats.format_decimal,
        share=formats.format_share,
        duration=formats.format_duration,
        seconds=formats.format_seconds,
        marked=formats.mark_quality,
        count_spread=partial(formats.spread_of, form=formats.format_count),
        seconds_spread=partial(formats.spread_of, form=formats.format_seconds),
    )
    files = {"style": "page.css", "script": "page.js", "range_script": "range.js"}
    for name, file in files.items():
        text = (_TEMPLATES / file).read_text(encoding="utf-8")
        environment.globals[name] = Markup(text)  # noqa: S704 - our own file
    return environment
