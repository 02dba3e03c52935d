# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Registrars that speak TLS, to callers and to one another."""

import http.client
import json
import socket
import ssl
import subprocess
import unittest

from registrars import INSTALLATION, PATIENCE, Registrars, controls, reserve_port


class Encrypted(unittest.TestCase):
    """Two registrars with certificates of a test's own authority"""

    NAMES = ("one", "two")

    def setUp(self):
        self.registrars = Registrars()
        self.addCleanup(self.registrars.close)
        self.make("ca", "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority")
        for name in self.NAMES:
            self.certify(name)
            self.registrars.ports[name] = port = reserve_port()
            self.registrars.start_registrar(
                name, advertisedURL=f"https://localhost:{port}", peerTokenFile=str(self.registrars.folder / "peer"),
                caFile=str(self.path("ca.pem")),
                tls={"certificateFile": str(self.path(f"{name}.pem")), "keyFile": str(self.path(f"{name}.key"))})
        self.registrars.wait_until_ready(*self.NAMES)

    def path(self, name):
        return self.registrars.folder / name

    def make(self, name, *arguments):
        subprocess.run(
            ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             *arguments], check=True, capture_output=True, cwd=self.registrars.folder)

    def certify(self, name, subject="localhost"):
        self.make(name, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={subject}")
        self.path(f"{name}.ext").write_text("subjectAltName=DNS:localhost\n")
        signed = subprocess.run(
            ["openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2",
             "-extfile", f"{name}.ext"], check=True, capture_output=True, cwd=self.registrars.folder)
        self.path(f"{name}.new").write_bytes(signed.stdout)
        self.path(f"{name}.new").rename(self.path(f"{name}.pem"))

    def connection(self, name, **more):
        trust = ssl.create_default_context(cafile=self.path("ca.pem"))
        for key, value in more.items():
            setattr(trust, key, value)
        connection = http.client.HTTPSConnection(
            "localhost", self.registrars.ports[name], timeout=PATIENCE, context=trust)
        self.addCleanup(connection.close)
        return connection

    def put(self, connection, installation, body):
        connection.request("PUT", f"{INSTALLATION}/{installation}/controls/G", json.dumps(body), {
            "Authorization": f"Bearer {self.registrars.key}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def test_registers_and_passes_on(self):
        connection = self.connection("one")
        for number in range(16):
            # The long one does not fit one record of TLS.
            subjects = [f"door-{each}-{'x' * 200}" for each in range(400 if number == 3 else 1)]
            status, _ = self.put(connection, f"T{number}", {"sequence": 1, "targets": controls(*subjects)})
            self.assertEqual(status, 200)
        table = self.registrars.table()
        self.assertEqual(len(table), 16)

    def test_speaks_tls_1_2_and_nothing_older(self):
        old = self.connection("one", maximum_version=ssl.TLSVersion.TLSv1_2)
        self.assertEqual(self.put(old, "T1", {"sequence": 1, "targets": []})[0], 200)
        # What is not TLS at all is told to go, and costs nobody else anything.
        with socket.create_connection(("127.0.0.1", self.registrars.ports["one"]), PATIENCE) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertNotIn(b"HTTP/1.1", plain.recv(100))
        self.assertEqual(self.put(self.connection("one"), "T1", {"sequence": 2, "targets": []})[0], 200)

    def test_presents_a_renewed_certificate(self):
        def serial():
            connection = self.connection("one")
            connection.connect()
            try:
                return connection.sock.getpeercert()["serialNumber"]
            finally:
                connection.close()

        first = serial()
        self.certify("one")
        self.registrars.wait_for("the new certificate", lambda: serial() != first)
        # One that cannot be used does not take the place of one that can.
        renewed = serial()
        self.path("one.pem").write_text("nothing")
        # It looks when somebody connects.
        self.registrars.wait_for("the complaint", lambda: serial() == renewed and (
            "a new certificate cannot be used" in self.registrars.printed("one.log")))
        self.assertEqual(serial(), renewed)


if __name__ == "__main__":
    unittest.main()
