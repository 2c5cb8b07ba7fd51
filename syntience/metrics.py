"""Prometheus metrics of one process: `protocol.ports.Metrics`, and an optional HTTP port that serves them."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, start_http_server

from protocol.errors import Bug
from syntience.errors import ConfigError, PortInUse

NAMESPACE = "syntience"
MOST_SERIES = 8192
"""Label combinations of one metric that are recorded: a stranger's inventions must not fill our memory."""

_log = logging.getLogger(__name__)


class PrometheusMetrics:
    """Counters and gauges, made at their first use; a name keeps its kind and its labels for ever."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._labels: dict[str, tuple[str, ...]] = {}
        self._series: dict[str, set[tuple[str, ...]]] = {}

    def count(self, name: str, amount: int = 1, labels: Mapping[str, str] | None = None) -> None:
        """Adds to the counter ``syntience_<name>_total``."""
        values = self._admit(name, labels, taken=name in self._gauges)
        if values is None:
            return
        if name not in self._counters:
            self._counters[name] = Counter(
                name, name, self._labels[name], namespace=NAMESPACE, registry=self.registry
            )
        counter = self._counters[name]
        (counter.labels(*values) if values else counter).inc(amount)

    def gauge(self, name: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Sets the gauge ``syntience_<name>``."""
        values = self._admit(name, labels, taken=name in self._counters)
        if values is None:
            return
        if name not in self._gauges:
            self._gauges[name] = Gauge(
                name, name, self._labels[name], namespace=NAMESPACE, registry=self.registry
            )
        gauge = self._gauges[name]
        (gauge.labels(*values) if values else gauge).set(value)

    def _admit(
        self, name: str, labels: Mapping[str, str] | None, *, taken: bool
    ) -> tuple[str, ...] | None:
        """The label values in the metric's own order; None once there are too many of them."""
        given = dict(sorted((labels or {}).items()))
        names = self._labels.setdefault(name, tuple(given))
        if taken or names != tuple(given):
            raise Bug(
                f"metric {name} was used before with another kind or other labels than {tuple(given)}"
            )
        values = tuple(given.values())
        series = self._series.setdefault(name, set())
        if values in series:
            return values
        if len(series) >= MOST_SERIES:
            return None
        series.add(values)
        if len(series) == MOST_SERIES:
            _log.warning(
                "metric %s has %d label combinations, no more are recorded", name, MOST_SERIES
            )
        return values


@contextmanager
def serve_metrics(metrics: PrometheusMetrics, *, host: str, port: int | None) -> Iterator[None]:
    """Serves ``http://host:port/metrics`` from a thread while the block lasts; does nothing for port None.

    Raises:
        PortInUse: the port is taken.
        ConfigError: we can't listen there.
    """
    if port is None:
        yield
        return
    try:
        server, thread = start_http_server(port, addr=host, registry=metrics.registry)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(host, port, flag="--metrics-port") from error
        raise ConfigError(
            f"can't serve metrics on {host}:{port} ({error.strerror or error})",
            "mend --metrics-host",
        ) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
