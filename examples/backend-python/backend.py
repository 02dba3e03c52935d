# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The backend of the garage door app. ../README.md lists its paths, its settings and what is left out."""

import hashlib
import json
import os
import queue
import re
import secrets
import sqlite3
import sys
import threading
import time
import urllib.request
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import jwt
from confluent_kafka import Producer
from cryptography.hazmat.primitives.serialization import load_pem_private_key

APP = "com.example.garage"
# The registrar takes 256 KiB: one batch is at most what was gathered, and one body on top of it.
BODY_BYTES_MAX = 128 << 10
GATHERED_BYTES_MAX = 64 << 10
# However your users sign in; here the sessions are given: "TOKEN=USER,TOKEN=USER".
SESSIONS = dict(pair.split("=") for pair in os.environ["SESSIONS"].split(","))
SIGNING_KEY = load_pem_private_key(Path(os.environ["SIGNING_KEY_FILE"]).read_bytes(), None)
JWK = jwt.algorithms.ECAlgorithm.to_jwk(SIGNING_KEY.public_key(), as_dict=True)
KEY_ID = hashlib.sha256((JWK["x"] + JWK["y"]).encode()).hexdigest()[:16]

SCHEMA = """
CREATE TABLE IF NOT EXISTS doors (id TEXT PRIMARY KEY, name TEXT NOT NULL, isOpen INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, user TEXT NOT NULL, title TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS installations (id TEXT PRIMARY KEY, user TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT NOT NULL,
                                   event TEXT NOT NULL);
INSERT OR IGNORE INTO doors VALUES ('door-42', 'Left', 0), ('door-43', 'Right', 0);
"""


class Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, status, detail):
        super().__init__(detail)
        self.status = status


def database():
    connection = sqlite3.connect(os.environ.get("DATABASE", "garage.db"), timeout=10, isolation_level=None)
    connection.row_factory = sqlite3.Row
    # FULL: a commit is on the disk, so that it survives a power failure too.
    connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
    return connection


def rows(sql, *values):
    with closing(database()) as connection:
        return [dict(row) for row in connection.execute(sql, values)]


# state-and-event: both or neither
def set_door(door_id, is_open):
    with closing(database()) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with connection:  # Commits, or rolls back if anything raises.
            door = connection.execute("SELECT * FROM doors WHERE id = ?", [door_id]).fetchone()
            if door is None:
                raise Refusal(404, "there is no such door")
            connection.execute("UPDATE doors SET isOpen = ? WHERE id = ?", [is_open, door_id])
            add_event(connection, door_id)
            for user in set(SESSIONS.values()):
                title = f"{door['name']} door {'opened' if is_open else 'closed'}"
                connection.execute("INSERT INTO messages (user, title) VALUES (?, ?)", [user, title])
                add_event(connection, f"user/{user}/messages")
    Relay.wake.set()
    return {"id": door_id, "name": door["name"], "isOpen": is_open}


def add_event(connection, subject):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    event = json.dumps({"v": 1, "id": secrets.token_hex(16), "time": now, "app": APP})
    connection.execute("INSERT INTO outbox (subject, event) VALUES (?, ?)", [subject, event])
# end


# relay: at least once, in order
class Relay(threading.Thread):
    """Publishes what is in the outbox. Of several backends with one database only one may run it."""

    wake = threading.Event()

    def run(self):
        # With idempotence a retry inside the producer neither duplicates nor reorders.
        producer = Producer({
            "bootstrap.servers": os.environ["KAFKA"], "acks": "all", "enable.idempotence": True,
            "partitioner": "murmur2_random"})  # Kafka's own; librdkafka's default is another.
        while True:
            try:
                sent = self.publish(producer, rows("SELECT * FROM outbox ORDER BY id LIMIT 500"))
            except Exception as error:  # The next start begins with the oldest unsent event.
                print("relay:", error, file=sys.stderr)
                os._exit(1)
            if not sent:
                self.wake.wait(1)
                self.wake.clear()

    def publish(self, producer, events):
        """Returns whether all of them were acknowledged. One that was not is sent again, and so are
        those after it: a duplicate is harmless, since an event says no more than that something changed."""
        failed = []
        for event in events:
            producer.produce(
                os.environ.get("EVENTS_TOPIC", "lamplighter.events"), event["event"], event["subject"],
                on_delivery=lambda error, _, id=event["id"]: error and failed.append(id))
        producer.flush()
        if events:
            end = min(failed, default=events[-1]["id"] + 1)
            rows("DELETE FROM outbox WHERE id < ?", end)
        return bool(events) and not failed
# end


def subject_prefixes(user):
    """What the user may hear of: all doors, and the messages to this user. A prefix ends with a character
    that ends a name: `user/ada` would also be one of `user/adam/messages`."""
    return ["door-", f"user/{user}/"]


# credential: for an app that talks to the registrar itself
def push_credential(user, installation):
    own(user, installation)
    # The user's other installations too: after signing out and in, the app removes the one before.
    installations = [row["id"] for row in rows(
        "SELECT id FROM installations WHERE user = ? ORDER BY rowid DESC LIMIT 20", user)]
    now = int(time.time())
    claims = {
        "iss": os.environ["ISSUER"], "aud": "lamplighter", "sub": user, "iat": now, "exp": now + 600,
        "app": APP, "installation": installations, "subjectPrefixes": subject_prefixes(user)}
    return {"token": jwt.encode(claims, SIGNING_KEY, "ES256", headers={"kid": KEY_ID})}


def own(user, installation):
    """Installations are random and secret; the first user who names one has it."""
    if not re.fullmatch(r"[A-Za-z0-9._~-]{1,128}", installation):
        raise Refusal(400, "name the installation: ?installation=…")
    rows("INSERT OR IGNORE INTO installations VALUES (?, ?)", installation, user)
    if rows("SELECT user FROM installations WHERE id = ?", installation)[0]["user"] != user:
        raise Refusal(403, "the installation is another user's")
# end


class Forwarder(threading.Thread):
    """Passes on the registrations of one environment, in one batch what came in during the last one. The
    app keeps each until it is answered, so nothing needs to be stored here."""

    def __init__(self, environment):
        super().__init__(daemon=True)
        self.url = f"{os.environ['REGISTRAR']}/v1/apps/{APP}/environments/{environment}/batch"
        self.key = Path(os.environ["SERVICE_KEY_FILE"]).read_text().strip()
        self.waiting = queue.Queue()

    def forward(self, item):
        """Returns status and body."""
        answer = queue.Queue(1)
        self.waiting.put((json.dumps(item), answer))
        return answer.get()

    def run(self):
        while True:
            batch = [self.waiting.get()]
            while not self.waiting.empty() and len(batch) < 500 and (
                    sum(len(item) for item, _ in batch) < GATHERED_BYTES_MAX):
                batch.append(self.waiting.get())
            for (_, answer), result in zip(batch, self.post([item for item, _ in batch])):
                answer.put((result["status"], result.get("body") or result.get("problem") or {}))

    def post(self, items):
        request = urllib.request.Request(
            self.url, f'{{"items":[{",".join(items)}]}}'.encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"})
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)["results"]
        except (OSError, ValueError) as error:
            # Whatever it is, a refused key too, the app cannot mend it: 503 makes it try again later.
            print("forwarder:", error, file=sys.stderr)
            return [{"status": 503, "problem": {"detail": "the registrar did not answer"}}] * len(items)


# forwarding: for an app that talks to this backend alone
def registration(user, method, match, body):
    """An item of a batch. A service key is not limited to subjects, so this backend must look at them."""
    own(user, match["installation"])
    item = {**body, "method": method, **{name: text for name, text in match.groupdict().items() if text}}
    del item["environment"]
    targets = [*(body.get("targets") or []), *sum((body.get("handlers") or {}).values(), [])]
    for target in targets:
        shows = target.get("shows") or []
        subjects = [subject for shown in shows for subject in shown.get("subjects") or []]
        # A target without subjects would hear of all of its kind.
        if shows and not all(shown.get("subjects") for shown in shows) or not all(
                subject.startswith(tuple(subject_prefixes(user))) for subject in subjects):
            raise Refusal(403, "a subject is not this user's")
    return item
# end


REGISTRATION = re.compile(
    rf"/v1/apps/{re.escape(APP)}/environments/(?P<environment>production|development)"
    r"/installations/(?P<installation>[^/]+)(?:/(?P<class>[^/]+)(?:/(?P<handler>[^/]+))?)?")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    forwarders = {name: Forwarder(name) for name in ("production", "development")}

    def answer(self):
        try:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 <= length <= BODY_BYTES_MAX:
                # What follows is not read. Of a negative length all would be, until the connection ends.
                self.close_connection = True
                raise Refusal(413 if length > 0 else 400, "the body is too long, or its length is none")
            status, content = self.content(self.rfile.read(length))
        except Refusal as refusal:
            status, content = refusal.status, {"detail": str(refusal)}
        except (ValueError, TypeError, AttributeError, KeyError):
            status, content = 400, {"detail": "the body is not what the README says"}
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        self.send_header("Content-Length", str(len(data)))
        if status in (429, 503):
            self.send_header("Retry-After", str(content.get("retryAfterSeconds", 5)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_DELETE = answer

    def content(self, body):
        url = urlsplit(self.path)
        if url.path == "/.well-known/jwks.json":
            return 200, {"keys": [{**JWK, "kid": KEY_ID, "alg": "ES256", "use": "sig"}]}
        user = SESSIONS.get((self.headers.get("Authorization") or "").removeprefix("Bearer "))
        if user is None:
            raise Refusal(401, "sign in")
        match (self.command, url.path.split("/")[1:]):
            case "GET", ["doors"]:
                return 200, [door(row) for row in rows("SELECT * FROM doors ORDER BY id")]
            case "GET", ["doors", name]:
                found = rows("SELECT * FROM doors WHERE id = ?", name)
                return (200, door(found[0])) if found else (404, {"detail": "there is no such door"})
            case "PUT", ["doors", name]:
                is_open = json.loads(body)["isOpen"]
                if not isinstance(is_open, bool):
                    raise Refusal(400, "isOpen is true or false")
                return 200, set_door(name, is_open)
            case "GET", ["messages"]:
                return 200, rows("SELECT CAST(id AS TEXT) AS id, title FROM messages WHERE user = ?"
                                 " ORDER BY messages.id DESC LIMIT 50", user)
            case "GET", ["push-credential"]:
                return 200, push_credential(user, parse_qs(url.query).get("installation", [""])[0])
        found = REGISTRATION.fullmatch(url.path)
        if found and self.command in ("PUT", "DELETE"):
            item = registration(user, self.command, found, json.loads(body or b"{}"))
            status, content = self.forwarders[found["environment"]].forward(item)
            return (200 if status == 204 else status), content
        raise Refusal(404, "the README lists the paths")

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def door(row):
    return {**row, "isOpen": bool(row["isOpen"])}


def main():
    with closing(database()) as connection:
        connection.executescript(SCHEMA)
    Relay(daemon=True).start()
    for forwarder in Handler.forwarders.values():
        forwarder.start()
    host, port = os.environ.get("LISTEN", "127.0.0.1:8080").split(":")
    server = Server((host, int(port)), Handler)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()


main()
