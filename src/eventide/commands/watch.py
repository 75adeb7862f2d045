"""`eventide watch`: the alerts of a running engine, as they are raised and clear."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

from eventide.endpoint.client import Client
from eventide.errors import EngineError
from eventide.report.why import moment

EVERY = 1.0


def watch_run(checkpoint: str, once: bool, as_json: bool) -> None:
    """Print the alerts that stand, then what is raised and what clears, until the engine ends or Ctrl-C."""
    client = Client.of_checkpoint(checkpoint)
    found = client.ask("GET", "/alerts")
    for alert in found["standing"]:
        _print(alert, as_json)
    if once:
        return
    seen = {_key(alert) for alert in (*found["standing"], *found["recent"])}
    with suppress(KeyboardInterrupt):
        while True:
            time.sleep(EVERY)
            try:
                found = client.ask("GET", "/alerts")
            except EngineError:
                # It has ended, and with it whatever stood.
                return
            for alert in found["recent"]:
                if _key(alert) not in seen:
                    seen.add(_key(alert))
                    _print(alert, as_json)


def _key(alert: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(alert[name] for name in ("kind", "of", "who", "raised", "cleared"))


def _print(alert: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(alert), flush=True)
        return
    cleared = alert["cleared"] is not None
    at = moment(round((alert["cleared"] if cleared else alert["raised"]) * 1000) * 1000)
    print(f"{at} {'cleared' if cleared else 'raised '} {alert['words']}", flush=True)
