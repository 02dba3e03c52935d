#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Writes lamplighter.json, the dashboard, from the table of panels in panels.py.

JSON of a dashboard repeats itself a hundredfold, so the table in panels.py is what people read and change.
Tests/Deploy/test_dashboard.py holds the file to it, and every query to docs/metrics.md. The schema is
that of Grafana 12 (41); older Grafanas from 10 on read it too.
"""

import itertools
import json
import pathlib

from panels import FIRING, ROWS

FILE = pathlib.Path(__file__).with_name("lamplighter.json")
SCHEMA = 41
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24

# Grafana's names of units that the table calls otherwise.
UNITS = {"pushes/s": "suffix: pushes/s", "events/s": "suffix: events/s"}


def defaults(kind, unit, title):
    found = {"unit": UNITS.get(unit, unit), "min": 0}
    if kind == "timeseries":
        found["custom"] = {"fillOpacity": 10, "showPoints": "never", "lineWidth": 1}
    if kind == "state-timeline":
        found["custom"] = {"fillOpacity": 80, "lineWidth": 0}
        steps = [("green", None), ("yellow", 1), ("red", 2)]
        if title == "Phase":
            steps = [("blue", None)]
        if title == "Blocked topics":
            steps = [("green", None), ("red", 1)]
        found["thresholds"] = threshold(steps)
    if title == "Fresh within 2 s":
        steps = [("red", None), ("yellow", 0.95), ("green", 0.99)]
        found |= {"max": 1, "decimals": 2, "thresholds": threshold(steps)}
    if title in ("Circuit breakers not closed", "Alerts"):
        found["thresholds"] = threshold([("green", None), ("red", 1)])
    return found


def threshold(steps):
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for color, value in steps]}


OPTIONS = {
    "stat": {"reduceOptions": {"calcs": ["last"]}, "colorMode": "value", "graphMode": "area"},
    "timeseries": {"legend": {"displayMode": "list", "placement": "bottom"},
                   "tooltip": {"mode": "multi", "sort": "desc"}},
    "state-timeline": {"legend": {"showLegend": False}, "showValue": "never", "mergeValues": True},
    "heatmap": {"calculate": False, "cellGap": 0, "yAxis": {"unit": "s"},
                "color": {"mode": "scheme", "scheme": "Oranges"}},
}


def panel(number, place, title, kind, unit, queries, description):
    made = {
        "id": number, "type": kind, "title": title, "datasource": DATASOURCE, "gridPos": place,
        "fieldConfig": {"defaults": defaults(kind, unit, title), "overrides": []},
        "options": OPTIONS[kind],
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": DATASOURCE, "expr": expr,
             "legendFormat": legend, "range": kind != "stat", "instant": kind == "stat",
             "format": "heatmap" if kind == "heatmap" else "time_series"}
            for index, (expr, legend) in enumerate(queries)
        ],
    }
    if description:
        made["description"] = description
    return made


def panels():
    numbers, y = itertools.count(1), 0
    for row, (heading, members) in enumerate(ROWS):
        yield {"id": next(numbers), "type": "row", "title": heading, "collapsed": False, "panels": [],
               "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": y}}
        y += 1
        per_line, height = (6, 4) if row == 0 else (3 if len(members) != 2 else 2, 8)
        width = WIDTH // per_line
        for index, member in enumerate(members):
            place = {"h": height, "w": width, "x": index % per_line * width, "y": y + index // per_line * height}
            yield panel(next(numbers), place, *member)
        y += -(-len(members) // per_line) * height


def variable(name, label, query, several):
    return {
        "type": "query", "name": name, "label": label, "datasource": DATASOURCE, "definition": query,
        "query": {"qryType": 1, "query": query, "refId": name}, "refresh": 2, "sort": 1,
        "multi": several, "includeAll": several, "allValue": ".*" if several else None,
        "current": {"text": ["All"], "value": ["$__all"]} if several else {},
    }


def dashboard():
    return {
        "uid": "lamplighter", "title": "Lamplighter", "tags": ["lamplighter"], "schemaVersion": SCHEMA,
        "description": "Written by deploy/grafana/dashboard.py. A fleet is a scrape job.",
        "editable": True, "graphTooltip": 1, "refresh": "30s", "timezone": "browser",
        "time": {"from": "now-3h", "to": "now"},
        "annotations": {"list": [{
            "name": "Alerts", "datasource": DATASOURCE, "enable": True, "iconColor": "red",
            "expr": FIRING.replace("}", ', severity="critical"}'),
            "titleFormat": "{{alertname}}", "textFormat": "{{instance}}", "step": "60s",
        }]},
        "templating": {"list": [
            {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus",
             "refresh": 1, "current": {}},
            variable("namespace", "Namespace", "label_values(lamplighter_build_info, namespace)", True),
            variable("job", "Fleet",
                     'label_values(lamplighter_build_info{namespace=~"$namespace"}, job)', False),
            variable("instance", "Worker",
                     'label_values(lamplighter_build_info{namespace=~"$namespace", job=~"$job"}, instance)', True),
        ]},
        "links": [], "panels": list(panels()),
    }


def text():
    """What the file should hold."""
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
