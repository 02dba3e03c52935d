# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Callers with JSON Web Tokens, whose keys the registrar fetches from a login service over HTTPS."""

import http.server
import json
import ssl
import subprocess
import sys
import threading
import unittest

from registrars import ENVIRONMENT, INSTALLATION, PATIENCE, Registrars, request

# Makes a key on P-256 and prints its JWK set, and then a token for each line of claims. Signed by a
# library that is not ours.
ISSUER = """
import base64, json, sys
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
key = ec.generate_private_key(ec.SECP256R1())
numbers = key.public_key().public_numbers()
print(json.dumps({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k1", "alg": "ES256", "use": "sig",
    "x": text(numbers.x.to_bytes(32, "big")), "y": text(numbers.y.to_bytes(32, "big"))}]}), flush=True)
for line in sys.stdin:
    head = text(json.dumps({"alg": "ES256", "kid": "k1"}).encode()) + "." + text(line.strip().encode())
    r, s = utils.decode_dss_signature(key.sign(head.encode(), ec.ECDSA(hashes.SHA256())))
    print(head + "." + text(r.to_bytes(32, "big") + s.to_bytes(32, "big")), flush=True)
"""


class LoginService:
    """Issues tokens, and serves its keys over TLS with a certificate of its own."""

    def __init__(self, folder):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
             "2", "-keyout", "login.key", "-out", "login.pem", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost"], check=True, capture_output=True, cwd=folder)
        self.issuer = subprocess.Popen(
            [sys.executable, "-c", ISSUER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.keys = self.issuer.stdout.readline().encode()
        keys = self.keys

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(keys)))
                self.end_headers()
                self.wfile.write(keys)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "login.pem", folder / "login.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"https://localhost:{self.server.server_port}/jwks"

    def token(self, **claims):
        claims = {"iss": "https://login", "aud": "lamplighter", "exp": 4_000_000_000, **claims}
        self.issuer.stdin.write(json.dumps(claims) + "\n")
        self.issuer.stdin.flush()
        return self.issuer.stdout.readline().strip()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.issuer.stdin.close()
        self.issuer.wait(PATIENCE)
        self.issuer.stdout.close()


class Tokens(unittest.TestCase):
    """A registrar that knows a login service"""

    @classmethod
    def setUpClass(cls):
        cls.registrars = Registrars()
        cls.addClassCleanup(cls.registrars.close)
        cls.login = LoginService(cls.registrars.folder)
        cls.addClassCleanup(cls.login.close)
        cls.registrars.start_registrar("one", auth={"jwt": {
            "jwksURL": cls.login.url, "caFile": str(cls.registrars.folder / "login.pem"), "issuer": "https://login",
            "audience": "lamplighter"}})
        cls.registrars.wait_until_ready("one")
        # Until the keys are fetched nobody can tell whether a token is good.
        cls.registrars.wait_for(
            "the keys", lambda: cls.put("I1", "user/7/door", cls.login.token(installation="I1"))[0] == 200)

    @classmethod
    def put(cls, installation, subject, token):
        body = {"targets": [{"token": "aa", "shows": [{"subjects": [subject]}]}]}
        status, _, answer = request(
            cls.registrars.ports["one"], "PUT", f"{INSTALLATION}/{installation}/widgets", body, token)
        return status, answer.get("type", "").removeprefix("/problems/")

    def test_a_token_is_for_its_installation_and_its_subjects(self):
        token = self.login.token(installation="I1", subjectPrefixes=["user/7/"])
        self.assertEqual(self.put("I1", "user/7/door", token), (200, ""))
        self.assertEqual(self.put("I2", "user/7/door", token), (403, "installationNotAllowed"))
        self.assertEqual(self.put("I1", "user/8/door", token), (403, "subjectNotAllowed"))

    def test_a_token_that_is_not_good_is_refused(self):
        for claims, problem in [
            ({"exp": 1}, "tokenExpired"), ({"aud": "another"}, "tokenRefused"), ({"iss": "another"}, "tokenRefused")]:
            with self.subTest(problem, **claims):
                token = self.login.token(installation="I1", **claims)
                self.assertEqual(self.put("I1", "user/7/door", token), (401, problem))
        head, claims, signature = self.login.token(installation="I1").split(".")
        other = self.login.token(installation="I2").split(".")
        self.assertEqual(self.put("I2", "x", f"{head}.{other[1]}.{signature}")[0], 401)
        # Without a signature, as in an old attack.
        self.assertEqual(self.put("I1", "x", f"eyJhbGciOiJub25lIn0.{claims}.")[0], 401)
        log = self.registrars.printed("one.log")
        self.assertNotIn(signature, log)


if __name__ == "__main__":
    unittest.main()
