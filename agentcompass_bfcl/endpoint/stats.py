"""What the endpoint was asked and what it did, for whoever wants to see what really went over the wire."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

type Json = Any  # a parsed JSON value


class Stats:
    """Counters of the chat requests. May be read from any thread while the server runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = self._waiting = self._most_waiting = 0
        self._rows: Counter[str] = Counter()
        self._served: Counter[str] = Counter()
        self._last_request: Mapping[str, Json] | None = None

    def arrived(self, body: Mapping[str, Json] | None) -> None:
        """Count a request; ``body`` is None when it could not be read."""
        with self._lock:
            self._requests += 1
            if body is not None:
                self._last_request = body

    def asked(self, sample_id: str) -> int:
        """Count a request for a row and return how many there were for it, this one included."""
        with self._lock:
            self._rows[sample_id] += 1
            return self._rows[sample_id]

    def served(self, outcome: str) -> None:
        """Count what was done about a request: a kind of mistake, ``right``, ``flaky_500`` or ``refused``."""
        with self._lock:
            self._served[outcome] += 1

    def began_waiting(self) -> None:
        """Count one more client that waits for an answer."""
        with self._lock:
            self._waiting += 1
            self._most_waiting = max(self._most_waiting, self._waiting)

    def stopped_waiting(self) -> None:
        """Count one client less: it was answered, hung up on, or went away."""
        with self._lock:
            self._waiting -= 1

    def snapshot(self) -> dict[str, Json]:
        """Give the counters as a JSON object.

        ``{"requests", "rows": {sample id: requests}, "served": {outcome: count}, "waiting", "most_waiting",
        "last_request"}``; ``last_request`` is the body of the last readable request without its messages, or null.
        ``waiting`` counts clients that are kept waiting by latency or a stall, now and at most.
        """
        with self._lock:
            last = self._last_request
            return {
                "requests": self._requests,
                "rows": dict(sorted(self._rows.items())),
                "served": dict(sorted(self._served.items())),
                "waiting": self._waiting,
                "most_waiting": self._most_waiting,
                "last_request": None if last is None else {key: last[key] for key in last if key != "messages"},
            }
