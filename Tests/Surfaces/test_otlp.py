# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What a worker exports to an OpenTelemetry collector, and that it does not care for its answers."""

import datetime
import hashlib
import json
import re
import subprocess
import time
import unittest

from otlp_worker import SECRET, TOPIC, Worker, attributes, identifier
from processes import APP, ENVIRONMENT, PROGRAMS, some

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


class Exports(unittest.TestCase):
    """A worker that exports"""

    @classmethod
    def setUpClass(cls):
        cls.begun = time.time_ns()
        cls.worker = Worker()
        cls.addClassCleanup(cls.worker.close)

    def setUp(self):
        self.worker.behave("200")

    def push(self, token, subject, event=None, traceparent=None):
        """Emits an event, and waits for its push."""
        before = len(self.worker.pushes(token))
        self.worker.emit(subject, event or {}, traceparent)
        self.worker.wait_for("the push", lambda: len(self.worker.pushes(token)) > before)

    def trace(self, trace, count):
        def found():
            spans = [span for span in self.worker.spans() if identifier(span["trace_id"]) == trace]
            return spans if len(spans) >= count else None

        return {span["name"]: span for span in self.worker.wait_for(f"{count} spans", found)}


class OTLP(Exports):
    """A worker's exports"""

    def test_a_sampled_event_arrives_as_three_spans(self):
        token = "ab" * 32
        begun = time.time_ns()
        self.worker.register(token, "door-1")
        self.push(token, "door-1", {"id": "order-7"}, f"00-{TRACE}-{PARENT}-01")
        spans = self.trace(TRACE, 3)
        self.assertEqual(set(spans), {"event", "plan", "push"})
        event, plan, push = spans["event"], spans["plan"], spans["push"]
        self.assertEqual(identifier(event["parent_span_id"]), PARENT)
        self.assertEqual(plan["parent_span_id"], event["span_id"])
        self.assertEqual(push["parent_span_id"], plan["span_id"])
        self.assertEqual(len({span["span_id"] for span in spans.values()}), 3)
        self.assertEqual(event["kind"], "SPAN_KIND_CONSUMER")
        self.assertEqual(plan["kind"], "SPAN_KIND_INTERNAL")
        self.assertEqual(push["kind"], "SPAN_KIND_CLIENT")
        for span in spans.values():
            start, end = int(span["start_time_unix_nano"]), int(span["end_time_unix_nano"])
            self.assertLessEqual(begun, start)
            self.assertLessEqual(start, end)
            self.assertLessEqual(end, time.time_ns())
            self.assertGreaterEqual(start, int(event["start_time_unix_nano"]))
            self.assertLessEqual(end, int(event["end_time_unix_nano"]))
        of_event, of_push = attributes(event), attributes(push)
        self.assertEqual(of_event["messaging.destination.name"], TOPIC)
        self.assertEqual(of_event["messaging.destination.partition.id"], "0")
        self.assertEqual(of_event["messaging.message.id"], "order-7")
        self.assertEqual(of_event["lamplighter.outcome"], "matched")
        self.assertEqual(attributes(plan)["lamplighter.pushes.queued"], 1)
        answered = self.worker.pushes(token)[-1]
        self.assertEqual(of_push["apns.id"], answered["apnsID"])
        self.assertEqual(of_push["http.response.status_code"], 200)
        self.assertEqual(of_push["lamplighter.token_id"], hashlib.sha256(bytes.fromhex(token)).hexdigest()[:16])
        self.assertEqual(of_push["lamplighter.app"], APP)
        self.assertEqual(of_push["apns.push_type"], "controls")
        self.assertNotIn("status", push)

    def test_a_refused_push_says_why(self):
        token, trace = "ee" * 32, "11112222333344445555666677778888"
        self.worker.register(token, "door-2")
        self.push(token, "door-2", {"id": "order-8"}, f"00-{trace}-{PARENT}-01")
        push = self.trace(trace, 3)["push"]
        self.assertEqual(push["status"], {"code": "STATUS_CODE_ERROR", "message": "BadMessageId"})
        self.assertEqual(attributes(push)["http.response.status_code"], 400)
        # The dead letter and the log have the same names for it.
        letters = subprocess.run(
            [PROGRAMS / "lamplighter", "dead-letters", "list", "--json", "--config", self.worker.configuration],
            check=True, env=ENVIRONMENT, capture_output=True, text=True).stdout.splitlines()
        letter = next(letter for letter in map(json.loads, letters) if letter.get("reason") == "BadMessageId")
        self.assertEqual(letter["eventID"], "order-8")
        self.assertEqual(letter["traceparent"], f"00-{trace}-{PARENT}-01")
        self.worker.wait_for(
            "the line in the log", lambda: "eventID=order-8" in self.worker.printed("worker.log"))
        self.assertRegex(
            self.worker.printed("worker.log"),
            rf"warning pushes have failed for good .*eventID=order-8 .*traceparent=00-{trace}-{PARENT}-01")

    def test_an_event_that_is_not_sampled_is_not_traced(self):
        token, trace, later = "cd" * 32, "99992222333344445555666677778888", "99992222333344445555666677779999"
        self.worker.register(token, "door-3")
        self.push(token, "door-3", traceparent=f"00-{trace}-{PARENT}-00")
        self.push(token, "door-3")
        # Spans are exported in their order, so any of those would have come before these.
        self.push(token, "door-3", traceparent=f"00-{later}-{PARENT}-01")
        self.trace(later, 3)
        traces = {identifier(span["trace_id"]) for span in self.worker.spans()}
        self.assertNotIn(trace, traces)
        # None has begun a trace of its own.
        for span in self.worker.spans():
            self.assertTrue(span["parent_span_id"])

    def test_the_metrics_are_those_of_the_page(self):
        self.worker.wait_for("a start", lambda: "lamplighter_partition_lag_records" in self.worker.exported())
        # An export may be of a moment before the page's, but not for long.
        try:
            self.worker.wait_for(
                "the page's series", lambda: self.worker.exported_series() == self.worker.page_series())
        except AssertionError:
            self.assertEqual(self.worker.exported_series(), self.worker.page_series())
        metrics = self.worker.exported()
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", self.worker.page(), re.MULTILINE))
        for name, metric in metrics.items():
            kind = {"counter": "sum", "gauge": "gauge", "histogram": "histogram"}[types[name]]
            self.assertIn(kind, metric, name)
            self.assertTrue(metric["description"].endswith("."), name)
            if kind != "gauge":
                self.assertEqual(metric[kind]["aggregation_temporality"], "AGGREGATION_TEMPORALITY_CUMULATIVE")
            if kind == "sum":
                self.assertTrue(metric["sum"]["is_monotonic"], name)
            for point in metric[kind]["data_points"]:
                self.assertLessEqual(self.begun, int(point["time_unix_nano"]), name)
                self.assertLessEqual(int(point["time_unix_nano"]), time.time_ns(), name)
        histogram = metrics["lamplighter_apns_round_trip_seconds"]
        self.assertEqual(histogram["unit"], "s")
        point = histogram["histogram"]["data_points"][0]
        self.assertEqual(len(point["bucket_counts"]), len(point["explicit_bounds"]) + 1)
        self.assertEqual(sum(map(int, point["bucket_counts"])), int(point.get("count", 0)))
        build = attributes(metrics["lamplighter_build_info"]["gauge"]["data_points"][0])
        self.assertEqual(set(build), {"version", "commit"})

    def test_every_request_is_what_its_schema_says(self):
        self.worker.wait_for("metrics", self.worker.exported)
        for request in self.worker.requests:
            self.assertNotIn("error", request)
            self.assertEqual(request["type"], "application/x-protobuf")
            self.assertEqual(request["authorization"], SECRET)
            kind = "resource_metrics" if request["path"] == "/v1/metrics" else "resource_spans"
            (resource,) = request["message"][kind]
            of_resource = attributes(resource["resource"])
            self.assertEqual(of_resource["service.name"], "lamplighter")
            self.assertEqual(of_resource["messaging.consumer.group.name"], "otlp-test")
            self.assertEqual(of_resource["deployment.environment.name"], "test")
            self.assertRegex(of_resource["service.instance.id"], r".+-\d+")

    def test_neither_exports_nor_the_log_have_a_token_or_a_secret(self):
        token, trace = "ba" * 32, "77772222333344445555666677778888"
        self.worker.register(token, "a-secret-subject")
        self.push(token, "a-secret-subject", traceparent=f"00-{trace}-{PARENT}-01")
        self.trace(trace, 3)
        for text in [request["text"] for request in self.worker.requests] + [self.worker.printed("worker.log")]:
            for secret in [token, bytes.fromhex(token).decode("latin-1"), SECRET, "hunter-otlp"]:
                self.assertNotIn(secret, text)
        for request in self.worker.requests:
            self.assertNotIn("a-secret-subject", request["text"])


class Collector(Exports):
    """A worker whose collector is ill"""

    def test_pushes_do_not_wait_for_a_collector_that_is_ill(self):
        token = "fe" * 32
        self.worker.register(token, "door-4")
        self.push(token, "door-4")
        for behaviour, outcome in some([
                ("500", "refused"), ("silence", "unanswered"), ("away", "unanswered")], of=2):
            with self.subTest(behaviour):
                series = f'lamplighter_otlp_exports_total{{signal="metrics",outcome="{outcome}"}}'
                before = self.worker.counted(series)
                if behaviour == "away":
                    self.worker.stop("receiver")
                else:
                    self.worker.behave(behaviour)
                if behaviour == "silence":
                    self.push_while_a_request_waits(token, "door-4")
                self.worker.wait_for(outcome, lambda: self.worker.counted(series) > before)
                for number in range(5):
                    self.push(token, "door-4", traceparent=f"00-{number + 1:032d}-{PARENT}-01")
                self.assertRegex(
                    self.worker.printed("worker.log"),
                    "telemetry is not exported; pushes go on .*signal=metrics")
                if behaviour == "away":
                    self.worker.receive(self.worker.port)
                self.worker.behave("200")
                delivered = 'lamplighter_otlp_exports_total{signal="metrics",outcome="delivered"}'
                before = self.worker.counted(delivered)
                self.worker.wait_for("exports again", lambda: self.worker.counted(delivered) > before)
                self.assertRegex(self.worker.printed("worker.log"), "telemetry is exported again signal=metrics")

    def push_while_a_request_waits(self, token, subject):
        """Fails if each push is accepted only when the collector's request has ended. On a busy machine the
        request may time out before a push that did not wait for it, so there are several tries."""
        for _ in range(5):
            before = self.worker.wait_for("a request without an answer", self.worker.waiting)
            self.push(token, subject)
            if before & self.worker.waiting():
                return
        self.fail("no push was accepted while a request to the collector was open")


class Stop(unittest.TestCase):
    """A worker that stops while its collector hangs"""

    def test_a_stop_does_not_wait_for_the_collector(self):
        worker = Worker(sampling=1)
        self.addCleanup(worker.close)
        worker.behave("silence")
        # On a busy machine a request may time out while a worker stops that does not wait for it, so there
        # are several tries.
        for _ in range(5):
            if self.request_outlives(worker):
                return
            worker.run()
        self.fail("a worker stopped only when its request to the collector had ended")

    def request_outlives(self, worker):
        """Stops a worker whose collector hangs, and returns whether its request was still open then. What
        ends a request then is the end of the process; one that was waited for ends before it."""
        earlier = set(worker.held())
        worker.wait_for("an export", lambda: set(worker.held()) - earlier)
        self.assertEqual(worker.stop("worker"), 0)
        opened = max(set(worker.held()) - earlier)
        ended = worker.wait_for("its end", lambda: worker.held()[opened])
        line = next(line for line in reversed(worker.printed("worker.log").splitlines())
                    if line.endswith(" notice stopped"))
        return ended > datetime.datetime.fromisoformat(line.split()[0].replace("Z", "+00:00")).timestamp()


if __name__ == "__main__":
    unittest.main(verbosity=2)
