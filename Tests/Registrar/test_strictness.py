# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Requests that a lenient server would guess at."""

import json
import socket
import unittest

from registrars import APP, INSTALLATION, PATIENCE, OneRegistrar, controls, request

BODY = json.dumps({"sequence": 1, "targets": controls("door-1")})


class Strictness(OneRegistrar):
    """One registrar, and requests that are not quite right"""

    def send(self, text):
        """Sends bytes as they are, and returns the status, the headers and the body of the answer."""
        with socket.create_connection(("127.0.0.1", self.registrars.ports["one"]), PATIENCE) as connection:
            connection.sendall(text.encode())
            answer = b""
            while chunk := connection.recv(1 << 16):
                answer += chunk
                head, end, body = answer.partition(b"\r\n\r\n")
                lines = head.decode().split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
                if end and len(body) >= int(headers.get("content-length", 0)):
                    break
        return int(lines[0].split()[1]), headers, body

    def put(self, *headers, path="/S1/controls/G", body=BODY, method="PUT"):
        lines = [
            f"{method} {INSTALLATION}{path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body.encode())}",
            f"Authorization: Bearer {self.registrars.key}", *headers]
        return self.send("\r\n".join(lines) + "\r\n\r\n" + body)

    def assert_problem(self, answer, status, name, field=None):
        found, headers, body = answer
        self.assertEqual((found, headers["content-type"]), (status, "application/problem+json"), body)
        problem = json.loads(body)
        self.assertEqual((problem["type"], problem["status"], problem.get("field")),
                         (f"/problems/{name}", status, field))
        self.assertTrue(problem["remedy"])
        return problem

    def test_what_is_no_request_is_a_problem_too(self):
        target = f"{INSTALLATION}/S1/controls/G"
        for status, name, text in [
            (400, "badRequest", f"GET {target} HTTP/1.1\r\n\r\n"),
            (400, "badRequest", f"G(T {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            (400, "badRequest", f"PUT {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
             "Transfer-Encoding: chunked\r\n\r\n{}"),
            (400, "badRequest", f"PUT {target} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
             "2\r\n{}\r\n0\r\n\r\n"),
            (417, "expectationFailed", f"PUT {target} HTTP/1.1\r\nHost: localhost\r\nExpect: more\r\n\r\n"),
            (431, "headerTooLarge", f"GET {target} HTTP/1.1\r\nHost: localhost\r\nX: {'x' * 20_000}\r\n\r\n"),
        ]:
            with self.subTest(text[:60], status=status):
                self.assert_problem(self.send(text), status, name)

    def test_a_body_that_is_too_long_is_told_how_long_it_may_be(self):
        answer = self.put("Content-Type: application/json", body="x" * 262_145)
        problem = self.assert_problem(answer, 413, "bodyTooLarge")
        self.assertIn("262144", problem["remedy"])

    def test_a_body_is_json_in_utf_8_without_an_encoding(self):
        kind = "Content-Type: application/json"
        for headers in [
            [f"{kind}; charset=iso-8859-1"], ["Content-Type: text/plain"], [kind, "Content-Encoding: gzip"],
            [kind, "Content-Type: application/json"], []]:
            with self.subTest(headers):
                self.assert_problem(self.put(*headers), 415, "unsupportedMediaType")
        self.assertEqual(self.put(f"{kind}; charset=UTF-8", "Content-Encoding: identity")[0], 200)

    def test_a_query_that_is_not_known_is_refused(self):
        json_type = "Content-Type: application/json"
        for method, query in [("PUT", "belowSequence=1"), ("GET", "x=1"), ("DELETE", "belowsequence=1"),
                              ("DELETE", "belowSequence=1&x=2")]:
            with self.subTest(method, query=query):
                answer = self.put(json_type, path=f"/S2/controls/G?{query}", method=method)
                self.assert_problem(answer, 422, "invalid", "query")
        self.assert_problem(
            self.put(json_type, path="/S2/controls/G?belowSequence=%2B1", method="DELETE"), 422, "invalid",
            "belowSequence")

    def test_a_name_that_paths_lose_is_refused(self):
        json_type = "Content-Type: application/json"
        for path, field in [("/%2E%2E/controls/G", "installation"), ("/S3/controls/..", "handler"),
                            ("/S3/controls/%2e", "handler")]:
            with self.subTest(path):
                self.assert_problem(self.put(json_type, path=path), 422, "invalid", field)
        answer = self.put(json_type, path="/S3/controls", body=json.dumps({"handlers": {"..": []}}))
        self.assert_problem(answer, 422, "invalid", "/handlers/..")

    def test_a_member_that_is_there_twice_is_refused(self):
        json_type = "Content-Type: application/json"
        answer = self.put(json_type, body='{"sequence":1,"sequence":2,"targets":[]}')
        self.assert_problem(answer, 422, "invalid", "/sequence")
        items = """{"items":[{"method":"DELETE","installation":"S4","installation":"S5"},
            {"method":"PUT","installation":"S4","class":"widgets","targets":[{"token":"aa","token":"bb"}]}]}"""
        status, _, answer = request(
            self.registrars.ports["one"], "POST", f"/v1/apps/{APP}/environments/production/batch", items,
            self.registrars.key)
        self.assertEqual(status, 200)
        self.assertEqual([(each["status"], each["problem"]["field"]) for each in answer["results"]],
                         [(422, "/items/0/installation"), (422, "/items/1/targets/0/token")])

    def test_an_item_with_a_member_that_is_not_known_removes_nothing(self):
        port, key = self.registrars.ports["one"], self.registrars.key
        path = f"{INSTALLATION}/S6/controls/G"
        self.assertEqual(request(port, "PUT", path, BODY, key)[0], 200)
        items = [
            {"method": "DELETE", "installation": "S6", "klass": "widgets"},
            {"method": "DELETE", "installation": "S6", "class": "controls", "handlr": "H"},
            {"method": "DELETE", "installation": "S6", "belowsequence": 1},
            {"method": "DELETE", "installation": "S6", "sequence": 1},
            {"method": "PUT", "installation": "S6", "class": "controls", "targets": [], "belowSequence": 1}]
        status, _, answer = request(
            port, "POST", f"/v1/apps/{APP}/environments/production/batch", json.dumps({"items": items}), key)
        self.assertEqual(status, 200)
        self.assertEqual([(each["status"], each["problem"]["field"]) for each in answer["results"]],
                         [(422, f"/items/{number}/{name}") for number, name in enumerate(
                             ["klass", "handlr", "belowsequence", "sequence", "belowSequence"])])
        self.assertEqual(request(port, "GET", path, key=key)[0], 200)


if __name__ == "__main__":
    unittest.main()
