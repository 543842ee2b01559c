"""A watch besides the terminal: metrics and page over HTTP, and its lines to a webhook."""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import unquote, urlsplit

import httpx

from coordinator_sim.listening import LOOPBACK, PAGE_POLICY, HttpGuard

_WAITING: Final = 100
"""Messages that wait for a slow hook; further ones are dropped and count as failed."""
_HOOK_S: Final = 10.0
_STREAMS: Final = 20
"""Pages that are sent events at a time."""
_DIGITS: Final = 19
"""No event has a number with so many."""
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
_TEXT: Final = "text/plain; charset=utf-8"
_NOT_FOUND: Final = (_TEXT, b"GET / or /metrics\n")


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


class WatchServer:
    """Answers `GET /metrics`, and on the loopback address the live page.

    Args:
        host: Address to bind.
        port: Its port; 0 for a free one.
        exposition: Gives the metrics.
        answer: Gives content type and body of a path of the page; None of one that there is not.
        stream: Gives the events after a number, for ever.

    Raises:
        OSError: The port cannot be bound.
    """

    def __init__(
        self,
        host: str,
        port: int,
        exposition: Callable[[], str],
        answer: Callable[[str], tuple[str, bytes] | None],
        stream: Callable[[int], Iterator[bytes]],
    ) -> None:
        guard = HttpGuard(host, server="the page") if host in LOOPBACK else None
        streams = threading.BoundedSemaphore(_STREAMS)

        class Handler(BaseHTTPRequestHandler):
            """One request."""

            def do_GET(self) -> None:
                """Answer with the metrics, or for the page."""
                url = urlsplit(self.path)
                if url.path == "/metrics":
                    self._send(200, _METRICS, exposition().encode())
                    return
                headers = {name.lower(): text for name, text in self.headers.items()}
                refused = None if guard is None else guard.refusal(headers)
                if guard is None or refused is not None:
                    status, reason = refused or (404, "GET /metrics; the page is on loopback")
                    self._send(status, _TEXT, f"{reason}\n".encode())
                elif url.path == "/v1/events":
                    self._stream(headers.get("last-event-id", ""))
                else:
                    found = answer(unquote(url.path))
                    self._send(404 if found is None else 200, *(found or _NOT_FOUND))

            def _stream(self, after: str) -> None:
                if not streams.acquire(blocking=False):
                    self._send(503, _TEXT, b"%d pages are open already\n" % _STREAMS)
                    return
                with contextlib.suppress(OSError), contextlib.ExitStack() as closing:
                    closing.callback(streams.release)
                    self.send_response(200)
                    self.send_header("Content-Type", "text/event-stream")
                    self.send_header("Cache-Control", "no-store")
                    self.end_headers()
                    is_known = after.isdecimal() and len(after) < _DIGITS
                    for part in stream(int(after) if is_known else 0):
                        self.wfile.write(part)

            def _send(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Security-Policy", PAGE_POLICY)
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
