"""Metrics as Prometheus reads them."""

from __future__ import annotations

import socket
import urllib.request

import pytest
from prometheus_client import generate_latest

from protocol.errors import Bug
from protocol.ports import Metrics
from syntience import metrics as module
from syntience.errors import ConfigError, PortInUse
from syntience.metrics import PrometheusMetrics, serve_metrics
from tests.ports import free_port


def text(metrics: PrometheusMetrics) -> str:
    return generate_latest(metrics.registry).decode()


def test_count_and_gauge__with_and_without_labels__are_exported() -> None:
    metrics = PrometheusMetrics()
    port: Metrics = metrics
    port.count("rounds")
    port.count("rounds", 2)
    port.count("checks", labels={"result": "ok", "kind": "data"})
    port.gauge("loss", 5.5)
    port.gauge("loss", 5.25)
    shown = text(metrics)
    assert "syntience_rounds_total 3.0" in shown
    assert 'syntience_checks_total{kind="data",result="ok"} 1.0' in shown
    assert "syntience_loss 5.25" in shown


def test_labels__other_names_or_kind__are_a_bug() -> None:
    metrics = PrometheusMetrics()
    metrics.count("checks", labels={"result": "ok"})
    with pytest.raises(Bug, match="other labels"):
        metrics.count("checks")
    with pytest.raises(Bug, match="another kind"):
        metrics.gauge("checks", 1, labels={"result": "ok"})


def test_labels__too_many__are_not_recorded_and_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_SERIES", 3)
    metrics = PrometheusMetrics()
    for number in range(10):
        metrics.count("peers", labels={"peer": str(number)})
    metrics.count("peers", labels={"peer": "1"})
    assert text(metrics).count("syntience_peers_total{") == 3
    assert 'peer="1"} 2.0' in text(metrics)
    assert len(caplog.records) == 1


def test_serve__while_the_block_lasts__answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    metrics, port = PrometheusMetrics(), free_port()
    metrics.count("rounds")
    url = f"http://127.0.0.1:{port}/metrics"
    with (
        serve_metrics(metrics, host="127.0.0.1", port=port),
        urllib.request.urlopen(url, timeout=5) as answer,
    ):
        assert b"syntience_rounds_total 1.0" in answer.read()
    with serve_metrics(metrics, host="127.0.0.1", port=port):
        pass


def test_serve__no_port__does_nothing() -> None:
    with serve_metrics(PrometheusMetrics(), host="nowhere.invalid", port=None):
        pass


def test_serve__port_taken__says_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(PortInUse, match="--metrics-port"),
            serve_metrics(PrometheusMetrics(), host="127.0.0.1", port=port),
        ):
            pass


def test_serve__foreign_host__says_so() -> None:
    with (
        pytest.raises(ConfigError, match=r"can't serve metrics on 192\.0\.2\.1"),
        serve_metrics(PrometheusMetrics(), host="192.0.2.1", port=free_port()),
    ):
        pass
