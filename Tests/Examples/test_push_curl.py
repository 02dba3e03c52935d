# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What `lamplighter push --curl` prints, run by a shell with the curl of the system, is the push that
`lamplighter push` sends: the APNs simulator accepts it. Needs no requirement."""

import json
import os
import re
import secrets
import subprocess
import unittest

from garage import ENVIRONMENT, PATIENCE, PROGRAMS, Processes


class PushCurl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.processes = Processes()
        cls.addClassCleanup(cls.processes.close)
        cls.folder = cls.processes.folder
        cls.processes.start(
            "apns", "lamplighter-lab", "simulate", "apns", "--address-file", "address", "--ca-file", "ca.pem",
            "--key-out", "key.p8", "--team", "ABCDE12345", "--key-id", "FGHIJ67890", "--app", "com.example.garage")
        address = cls.processes.wait_for("the APNs simulator", lambda: cls.processes.printed("address"))
        host, port = re.search(r"production (\S+):(\d+)", address).groups()
        (cls.folder / "lamplighter.yaml").write_text(f"""
kafka: {{bootstrap: "127.0.0.1:1"}}
apns:
  caFile: {cls.folder}/ca.pem
  endpoints: {{production: {{host: "{host}", port: {port}}}}}
  credentials:
    main: {{team: ABCDE12345, keyID: FGHIJ67890, keyFile: {cls.folder}/key.p8, apps: [com.example.garage]}}
""")

    def push(self, *options):
        """A token belongs to the topic that it was first used with, so each push has its own."""
        return subprocess.run(
            [PROGRAMS / "lamplighter", "push", "--config", "lamplighter.yaml", "--environment", "production",
             "--app", "com.example.garage", *options],
            cwd=self.folder, input=secrets.token_hex(32) + "\n", capture_output=True, text=True, env=ENVIRONMENT, timeout=PATIENCE)

    def run_by_a_shell(self, command):
        return subprocess.run(
            ["sh", "-euc", command], capture_output=True, text=True, timeout=PATIENCE, cwd=self.folder,
            env={name: value for name, value in os.environ.items() if "proxy" not in name.lower()})

    def test_no_provider_token_is_printed_unless_asked_for(self):
        printed = self.push("--curl")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertIn("$JWT", printed.stdout)
        self.assertIn("--show-token", printed.stderr)
        self.assertNotRegex(printed.stdout + printed.stderr, r"eyJ")

    def test_a_shell_sends_what_is_printed(self):
        payload = json.dumps({"aps": {"alert": "it's $HOME `open` \\ \"now\""}})
        for options in ([], ["--payload", payload, "--ttl", "30s"]):
            with self.subTest(options=options):
                printed = self.push("--curl", "--show-token", *options)
                self.assertEqual(printed.returncode, 0, printed.stderr)
                sent = self.run_by_a_shell(printed.stdout)
                self.assertEqual(sent.stdout.splitlines()[0].split()[:2], ["HTTP/2", "200"], sent.stdout)
                apns_id = re.search(r"'apns-id: (\S+)'", printed.stdout)[1]
                self.assertIn(f"apns-id: {apns_id}", sent.stdout)

    def test_a_shell_without_a_token_sends_nothing_that_is_accepted(self):
        sent = self.run_by_a_shell("JWT=none\n" + self.push("--curl").stdout)
        self.assertEqual(sent.stdout.splitlines()[0].split()[:2], ["HTTP/2", "403"], sent.stdout)

    def test_options_that_contradict_each_other_are_refused(self):
        self.assertEqual(self.push("--show-token").returncode, 64)
        self.assertEqual(self.push("--curl", "--json").returncode, 64)


if __name__ == "__main__":
    unittest.main()
