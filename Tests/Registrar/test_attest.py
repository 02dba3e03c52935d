# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""An app without a backend: from a challenge by an attestation to registrations with assertions."""

import datetime
import http.client
import json
import pathlib
import subprocess
import sys
import unittest

from registrars import APP, ENVIRONMENT, INSTALLATION, PATIENCE, TEAM, Registrars, controls, request

BASE = f"/v1/apps/{APP}/environments/production"


class Device:
    """An attested app, below a root of the test's own."""

    def __init__(self):
        script = pathlib.Path(__file__).with_name("attested_device.py")
        self.process = subprocess.Popen(
            [sys.executable, script, f"{TEAM}.{APP}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=ENVIRONMENT)
        self.root = json.loads(self.process.stdout.readline())
        self.counter = 0

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def authorization(self, credential, method, path, body, key=None):
        """Of this key, or of the one that was attested last."""
        self.counter += 1
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        assertion = self.ask(
            do="assert", keyID=key, method=method, path=path, date=date, body=body, counter=self.counter)
        return f'AppAttest credential="{credential}", assertion="{assertion}", date="{date}"'

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


class Attested(unittest.TestCase):
    """A registrar that accepts App Attest"""

    @classmethod
    def setUpClass(cls):
        cls.registrars = Registrars()
        cls.addClassCleanup(cls.registrars.close)
        cls.device = Device()
        cls.addClassCleanup(cls.device.close)
        (cls.registrars.folder / "root.pem").write_text(cls.device.root)
        (cls.registrars.folder / "secret").write_text("0123456789" * 4 + "\n")
        cls.registrars.start_registrar("one", auth={"appAttest": {
            "rootFile": str(cls.registrars.folder / "root.pem"),
            "secretFile": str(cls.registrars.folder / "secret"), "teamIDs": {APP: TEAM}}})
        cls.registrars.wait_until_ready("one")

    def post(self, path, body=None):
        return request(self.registrars.ports["one"], "POST", path, body)

    def attest(self, installation, challenge=None):
        if challenge is None:
            status, _, answer = self.post(f"{INSTALLATION}/{installation}/attest/challenge")
            self.assertEqual(status, 200)
            challenge = answer["challenge"]
        body = {**self.device.ask(do="attest", challenge=challenge), "challenge": challenge}
        return self.post(f"{INSTALLATION}/{installation}/attest", body)

    def send(self, authorization, method, path, body=""):
        connection = http.client.HTTPConnection("127.0.0.1", self.registrars.ports["one"], timeout=PATIENCE)
        try:
            connection.request(method, path, body, {
                "Authorization": authorization, "Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        answered = json.loads(text) if text else {}
        return answer.status, answered.get("type", "").removeprefix("/problems/")

    def test_an_attested_app_registers_and_nobody_else_with_its_credential(self):
        status, _, issued = self.attest("I1")
        self.assertEqual(status, 200, issued)
        path, body = f"{INSTALLATION}/I1/controls/Garage", json.dumps({"sequence": 1, "targets": controls("door-1")})
        asserted = self.device.authorization(issued["credential"], "PUT", path, body)
        self.assertEqual(self.send(asserted, "PUT", path, body), (200, ""))
        self.assertEqual(self.registrars.table()[f"production/{APP}/I1/Garage"]["sequence"], 1)
        # The assertion is for this request, and the credential for this installation.
        other = json.dumps({"sequence": 2, "targets": []})
        self.assertEqual(self.send(asserted, "PUT", path, other), (401, "assertionRefused"))
        elsewhere = f"{INSTALLATION}/I2/controls/Garage"
        stolen = self.device.authorization(issued["credential"], "PUT", elsewhere, body)
        self.assertEqual(self.send(stolen, "PUT", elsewhere, body), (403, "installationNotAllowed"))
        removal = self.device.authorization(issued["credential"], "DELETE", path, "")
        self.assertEqual(self.send(removal, "DELETE", path)[0], 204)
        # Nobody brings back what was removed with the request that somebody has recorded.
        self.assertEqual(self.send(asserted, "PUT", path, body), (401, "assertionOutdated"))
        log = self.registrars.printed("one.log")
        self.assertIn("appAttest:", log)
        self.assertNotIn(issued["credential"], log)

    def test_an_installation_is_for_the_first_key_until_it_is_deleted(self):
        _, _, answer = self.post(f"{INSTALLATION}/I4/attest/challenge")
        body = {**self.device.ask(do="attest", challenge=answer["challenge"]), "challenge": answer["challenge"]}
        # Twice the same, as when an answer was lost. Another key is another device's, or this one's after a
        # reinstallation.
        for _ in range(2):
            status, _, issued = self.post(f"{INSTALLATION}/I4/attest", body)
            self.assertEqual(status, 200, issued)
        refusal = self.attest("I4")
        self.assertEqual((refusal[0], refusal[2]["type"]), (403, "/problems/installationClaimed"))
        self.assertEqual(self.registrars.table()[f"production/{APP}/I4/default.attest"]["targets"], [])
        # It is no handler of the app's.
        path = f"{INSTALLATION}/I4"
        key = body["keyID"]
        shown = self.device.authorization(issued["credential"], "GET", path, "", key)
        connection = http.client.HTTPConnection("127.0.0.1", self.registrars.ports["one"], timeout=PATIENCE)
        self.addCleanup(connection.close)
        connection.request("GET", path, headers={"Authorization": shown})
        self.assertEqual(json.loads(connection.getresponse().read())["handlers"], [])
        body = json.dumps({"targets": []})
        named = self.device.authorization(issued["credential"], "PUT", f"{path}/device/default.attest", body, key)
        self.assertEqual(self.send(named, "PUT", f"{path}/device/default.attest", body)[0], 422)
        removal = self.device.authorization(issued["credential"], "DELETE", path, "", key)
        self.assertEqual(self.send(removal, "DELETE", path)[0], 204)
        self.assertIsNone(self.registrars.table()[f"production/{APP}/I4/default.attest"])
        self.assertEqual(self.attest("I4")[0], 200)

    def test_an_attestation_for_a_challenge_of_somebody_else_is_refused(self):
        status, _, problem = self.attest("I3", "a-challenge-that-the-registrar-has-not-made")
        self.assertEqual((status, problem["type"]), (403, "/problems/challengeRefused"))
        status, _, problem = self.post(f"{INSTALLATION}/I3/attest", {"keyID": "x", "challenge": "y"})
        self.assertEqual((status, problem["field"]), (422, "/attestation"))


if __name__ == "__main__":
    unittest.main()
