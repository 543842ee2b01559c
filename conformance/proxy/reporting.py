"""The proxy's output: a line for each flag, and a log with the frames."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, Final

import msgspec

from coordinator_sim_conformance.proxy.exchanges import NEVER, Exchange, Flag
from coordinator_sim_conformance.wire.kio_bodies import Json

_REMARKS: Final = 100
"""Most remarks that are told, each once."""


class Reporter:
    """Tells flags and remarks.

    Args:
        say: Takes a line for standard output.
        hint: Takes a line for standard error.
        log: Takes JSON, a line for each flag, with requests and replies as frames.
        as_json: Whether the lines of standard output are JSON.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        hint: Callable[[str], None],
        log: IO[bytes] | None,
        *,
        as_json: bool,
    ) -> None:
        self._say = say
        self._hint = hint
        self._log = log
        self._as_json = as_json
        self._remarks: set[str] = set()

    def tell(self, flag: Flag) -> None:
        """Tell a flag."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        rule = flag.rule
        found: Json = {
            "at": at,
            "rule": rule.rule_id,
            "group": flag.group_id,
            "said": flag.said,
            "requirement": rule.says,
            "source": rule.source,
        }
        if self._as_json:
            self._say(msgspec.json.encode(found).decode())
        else:
            self._say(f"{at} {rule.rule_id} group {flag.group_id!r}: {flag.said} ({rule.says})")
        if self._log is not None:
            frames = [_logged(each) for each in (*flag.evidence, flag.exchange)]
            self._log.write(msgspec.json.encode(found | {"exchanges": frames}) + b"\n")
            self._log.flush()

    def remark(self, text: str) -> None:
        """Tell what is not judged, once."""
        if text not in self._remarks and len(self._remarks) < _REMARKS:
            self._remarks.add(text)
            self._hint(f"note: {text}")


def _logged(exchange: Exchange) -> Json:
    return {
        "connection": exchange.connection,
        "client_id": exchange.client_id,
        "api": exchange.api,
        "version": exchange.version,
        "sent": exchange.sent,
        "replied": None if exchange.replied == NEVER else exchange.replied,
        "request": exchange.request_frame.hex(),
        "reply": exchange.reply_frame.hex(),
    }
