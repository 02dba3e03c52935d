# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""A receiver of OTLP over HTTP that decodes with OpenTelemetry's own types (requirements.txt).

It writes each request as a line of JSON to requests.ndjson in its folder, and its port to the file
port. The file behaviour says how it answers: a status, or silence. When a request that gets no answer comes
and when its client gives it up are lines of held.ndjson. It ends with its standard input.
"""

import http.server
import json
import os
import pathlib
import sys
import threading
import time

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

REQUESTS = {
    "/v1/metrics": metrics_service_pb2.ExportMetricsServiceRequest,
    "/v1/traces": trace_service_pb2.ExportTraceServiceRequest,
}
FOLDER = pathlib.Path(sys.argv[1])


def decoded(path, body):
    """The request as JSON; raises ValueError unless every byte of it is what the schema says."""
    message = REQUESTS[path]()
    message.ParseFromString(body)
    # Whatever is unknown, out of order, or a default that should have been left out, shows here.
    if message.SerializeToString(deterministic=True) != body:
        raise ValueError("the request is not what its message would be written as")
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        line = {
            "time": time.time(),
            "path": self.path,
            "type": self.headers["content-type"],
            "authorization": self.headers["authorization"],
            "bytes": len(body),
            "text": body.decode("latin-1"),
        }
        try:
            line["message"] = decoded(self.path, body)
        except Exception as error:  # The test reports it.
            line["error"] = repr(error)
        with self.lock, open(FOLDER / "requests.ndjson", "a") as file:
            file.write(json.dumps(line) + "\n")
        behaviour = (FOLDER / "behaviour").read_text()
        if behaviour == "silence":
            return self.hold()
        self.send_response(int(behaviour))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def hold(self):
        """Answers nothing until the client gives up."""
        opened = time.time()
        self.note({"opened": opened})
        try:
            self.rfile.read(1)
        except OSError:
            pass
        self.note({"opened": opened, "closed": time.time()})
        self.close_connection = True

    def note(self, line):
        with self.lock, open(FOLDER / "held.ndjson", "a") as file:
            file.write(json.dumps(line) + "\n")

    def log_message(self, *arguments):
        pass


def main():
    if not (FOLDER / "behaviour").exists():
        (FOLDER / "behaviour").write_text("200")
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    (FOLDER / "port.new").write_text(f"{server.server_port}\n")
    os.rename(FOLDER / "port.new", FOLDER / "port")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


main()
