"""A watch besides the terminal: its metrics over HTTP, and its lines to a webhook."""

import contextlib
import queue
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import httpx

_WAITING: Final = 100
"""Messages that wait for a slow hook; further ones are dropped and count as failed."""
_HOOK_S: Final = 10.0


def is_web_address(text: str) -> bool:
    """Whether a text is a URL of HTTP whose host can be looked up."""
    try:
        url = httpx.URL(text)
        return url.scheme in {"http", "https"} and bool(url.host.encode("idna"))
    except (httpx.InvalidURL, UnicodeError):
        return False


class Webhook:
    """Posts lines to a URL, as Slack takes them; a thread waits for the answers.

    Args:
        url: Where to post.
        failed: Called with the reason, mostly in the thread, the first time that one is not taken.
        answer_s: How long an answer may take, in seconds.

    Attributes:
        failures: Lines that were not taken.
    """

    def __init__(
        self, url: str, failed: Callable[[str], None], *, answer_s: float = _HOOK_S
    ) -> None:
        self.failures = 0
        self._answer_s = answer_s
        self._url = url
        self._failed = failed
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._post, name="webhook", daemon=True)
        self._thread.start()

    def post(self, text: str) -> None:
        """Queue a line; never waits."""
        try:
            self._lines.put_nowait(text)
        except queue.Full:
            self._note(f"{_WAITING} lines wait for it already")

    def close(self) -> None:
        """Post what is queued, for as long as one answer may take; count what is left."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=self._answer_s)
            self._lines.task_done()  # Only lines are to be counted.
            self._thread.join(self._answer_s)
        for _ in range(self._lines.unfinished_tasks):
            self._note("no answer before the watch ended")

    def _post(self) -> None:
        with httpx.Client(timeout=self._answer_s) as client:
            while (text := self._lines.get()) is not None:
                try:
                    answer = client.post(self._url, json={"text": text})
                except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
                    self._note(str(error) or type(error).__name__)
                else:
                    if not answer.is_success:
                        self._note(f"HTTP {answer.status_code}")
                self._lines.task_done()

    def _note(self, why: str) -> None:
        self.failures += 1
        if self.failures == 1:
            self._failed(why)


class MetricsServer:
    """Answers `GET /metrics`.

    Args:
        host: Address to bind.
        port: Its port; 0 for a free one.
        exposition: Gives the text.

    Raises:
        OSError: The port cannot be bound.
    """

    def __init__(self, host: str, port: int, exposition: Callable[[], str]) -> None:
        class Handler(BaseHTTPRequestHandler):
            """One request."""

            def do_GET(self) -> None:
                """Answer with the metrics, or say where they are."""
                is_found = self.path.partition("?")[0] == "/metrics"
                body = (exposition() if is_found else "GET /metrics\n").encode()
                self.send_response(200 if is_found else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
