# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Strangers who open connections and send bodies, write to Kafka, or listen where a replica was."""

import http.server
import json
import os
import pathlib
import resource
import socket
import threading
import time
import unittest

from registrars import APP, INSTALLATION, PATIENCE, OneRegistrar, Registrars, controls, request


class Strangers(OneRegistrar):
    """A registrar among strangers"""

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.registrars.ports["one"]), PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def test_a_body_is_not_waited_for_where_the_head_shows_nobody(self):
        connection = self.connect()
        connection.sendall(
            f"PUT {INSTALLATION}/S1/controls/G HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            "Content-Length: 262144\r\n\r\n".encode())
        self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 401 "))

    def registered(self, sequence):
        """The status of a PUT, which is asked once more as clients do: from the address of a crowd a connection
        may be taken for one of it before its request is read."""
        def ask():
            return self.registrars.ask(
                "one", "PUT", f"{INSTALLATION}/S2/controls/G", {"sequence": sequence, "targets": []})[0]

        try:
            return ask()
        except ConnectionResetError:
            return ask()

    def test_connections_that_say_nothing_keep_nobody_out(self):
        # More than strangers may have.
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        connections = [self.connect() for _ in range(min(1500, limits[1] - 200))]
        for number in range(20):
            self.assertEqual(self.registered(number), 200)
        self.assertEqual(request(self.registrars.healths["one"], "GET", "/livez")[0], 200)
        del connections

    def test_a_record_with_a_sequence_that_no_client_may_have_keeps_nobody_out(self):
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.registrars.bootstrap, "partitioner": "murmur2_random"})
        for number, sequence in enumerate((2**63 - 1, -2**63, 2**53)):
            for handler in ("G", "default.controls"):
                producer.produce(
                    "lamplighter.registrations", key=f"production/{APP}/F{number}/{handler}",
                    value=json.dumps({"v": 1, "sequence": sequence, "targets": []}))
        self.assertEqual(producer.flush(PATIENCE), 0)
        self.registrars.wait_for("the records", lambda: len(self.registrars.ask(
            "one", "GET", f"{INSTALLATION}/F2")[2]["handlers"]) == 2)
        for number in range(3):
            for path, body in (
                    ("controls/G", {"targets": controls("a")}), ("controls", {"handlers": {"default": []}})):
                status, _, answer = self.registrars.ask("one", "PUT", f"{INSTALLATION}/F{number}/{path}", body)
                self.assertEqual(status, 200, answer)
                self.assertLess(answer["sequence"], 10)


class Descriptors(OneRegistrar):
    """A registrar that may open no more files"""

    def test_without_a_free_file_descriptor_no_core_is_kept_busy(self):
        process = self.registrars.running["one"].pid
        files = pathlib.Path(f"/proc/{process}/fd")

        def cores():
            fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        limits = resource.prlimit(process, resource.RLIMIT_NOFILE)
        few = max(int(file.name) for file in files.iterdir()) + 11
        resource.prlimit(process, resource.RLIMIT_NOFILE, (few, limits[1]))
        try:
            address = ("127.0.0.1", self.registrars.ports["one"])
            connections = [socket.create_connection(address, PATIENCE) for _ in range(60)]
            self.registrars.wait_for("all to be taken", lambda: len(list(files.iterdir())) >= few)
            before = cores()
            time.sleep(2)
            # A thread that spins takes all of the time on a machine that has nothing else to do.
            self.assertLess(cores() - before, 1)
        finally:
            resource.prlimit(process, resource.RLIMIT_NOFILE, limits)
        for connection in connections:
            connection.close()
        status, _, _ = self.registrars.ask("one", "GET", f"{INSTALLATION}/S3")
        self.assertEqual(status, 200)


class Listener(http.server.BaseHTTPRequestHandler):
    """Answers everything as an owner would."""

    def answer(self):
        self.server.heads.append(dict(self.headers))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b'{"sequence":1,"written":true}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


class BetweenReplicas(unittest.TestCase):
    """Registrars, and somebody among them"""

    @classmethod
    def setUpClass(cls):
        cls.registrars = Registrars()
        cls.addClassCleanup(cls.registrars.close)
        for name in ("one", "two"):
            cls.registrars.start_registrar(name, has_others=True)
        cls.registrars.wait_until_ready("one", "two")

    def test_whoever_listens_where_a_replica_was_learns_no_token_and_is_not_believed(self):
        self.registrars.kill("two")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", self.registrars.ports["two"]), Listener)
        server.heads = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        written = [number for number in range(12) if self.registrars.ask(
            "one", "PUT", f"{INSTALLATION}/P{number}/controls/G", {"sequence": 1, "targets": []})[0] == 200]
        table = self.registrars.table()
        for number in written:
            self.assertIn(f"production/{APP}/P{number}/G", table)
        token = (self.registrars.folder / "peer").read_text().strip()
        self.assertNotIn(token, json.dumps(server.heads))


if __name__ == "__main__":
    unittest.main()
