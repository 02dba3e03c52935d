# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What a worker's metrics say."""

import re
import urllib.request


def url(log):
    """Where the worker of this log serves them; None before it does."""
    found = re.search(r"listening for probes and for requests of metrics .*port=(\d+)", log)
    return found and f"http://127.0.0.1:{found[1]}"


def read(address):
    with urllib.request.urlopen(f"{address}/metrics", timeout=10) as answer:
        return answer.read().decode()


def total(text, name, labels=""):
    """The sum of a metric's samples whose labels contain `labels`."""
    return sum(
        float(value) for found, value in re.findall(rf"(?m)^{name}(?:{{(.*?)}})? (\S+)$", text)
        if labels in found)


def latencies(text):
    """Acceptances so far by the upper bound of their latency in seconds, of all push types."""
    buckets = {}
    for bound, count in re.findall(
            r'^lamplighter_event_to_accepted_seconds_bucket{.*?le="(.+?)"} (\d+)', text, re.M):
        bound = float(bound)
        buckets[bound] = buckets.get(bound, 0) + int(count)
    return buckets


def quantile(buckets, share):
    """Within a bucket, values are taken for evenly spread; None where there are none."""
    wanted = share * max(buckets.values(), default=0)
    lower = below = 0
    for bound, count in sorted(buckets.items()):
        if count >= wanted > 0:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (wanted - below) / (count - below)
        lower, below = bound, count
    return None
