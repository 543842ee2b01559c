"""Text in quotation marks, as TOML, YAML and JSON all read it."""

import json
import re
from typing import Final

_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows as they are, and YAML or TOML does not."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    """Return the text with U+FFFD for what no encoding has: half a character."""
    return _SURROGATE.sub("\ufffd", text)


def quoted(text: str) -> str:
    """Return the text in double quotes on one line, with escapes that all three forms share."""
    escaped = json.dumps(printable(text), ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped)
