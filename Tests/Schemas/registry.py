# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""A schema registry with the part of Confluent's API that serializers and Lamplighter use.

Its argument is a folder, where it writes the port that it listens on and each request in a line of JSON.
The file `behaviour` there says how it answers: `well`, `status N [retry-after]`, `silence`, `page` (another
server's 404), `garbage` or `large`; a further line `PATH WORDS` says it of one path. With the variables USER_NAME and SECRET it wants Basic authentication, and with TLS it has the
certificate cert.pem with the key key.pem. The file schemas.json gives it schemas
at its start. It ends with its standard input.
"""

import base64
import http.server
import json
import os
import pathlib
import ssl
import sys
import tempfile
import threading
import time
import urllib.parse

NOT_FOUND = {"subject": (404, 40401, "Subject not found"), "version": (404, 40402, "Version not found"),
             "schema": (404, 40403, "Schema not found")}


class Store:
    """Schemas by number, and the numbers of a subject's versions. The same schema has one number."""

    def __init__(self):
        self.lock = threading.Lock()
        self.schemas = {}
        self.subjects = {}

    def register(self, subject, schema):
        schema = {key: schema[key] for key in ("schema", "schemaType", "references") if schema.get(key)}
        with self.lock:
            number = next(
                (number for number, known in self.schemas.items() if known == schema), len(self.schemas) + 1)
            self.schemas[number] = schema
            versions = self.subjects.setdefault(subject, [])
            if number not in versions:
                versions.append(number)
            return number

    def version(self, subject, version):
        versions = self.subjects.get(subject)
        if versions is None:
            return None, "subject"
        index = len(versions) if version == "latest" else int(version)
        if not 1 <= index <= len(versions):
            return None, "version"
        number = versions[index - 1]
        return {"subject": subject, "version": index, "id": number, **self.schemas[number]}, None


def serialized(schema):
    """The schema as Confluent's client for Python asks for it: a descriptor, compiled by protoc."""
    from grpc_tools import protoc
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        for file, text in files(schema, "default.proto"):
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(text)
        include = pathlib.Path(protoc.__file__).parent / "_proto"
        if protoc.main(["protoc", f"-I{place}", f"-I{include}", f"--descriptor_set_out={place}/out", "default.proto"]):
            raise ValueError("protoc refuses a schema")
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
        descriptor = FileDescriptorSet.FromString((place / "out").read_bytes()).file[0]
        return base64.b64encode(descriptor.SerializeToString()).decode()


def files(schema, name):
    """A schema and all that it refers to, with the names of their files."""
    yield name, schema["schema"]
    for reference in schema.get("references", []):
        yield from files(store.version(reference["subject"], reference["version"])[0], reference["name"])


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer_as_told(None)

    def do_POST(self):
        self.answer_as_told(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def answer_as_told(self, body):
        # Whoever has seen the request may change how the next is answered.
        lines = (folder / "behaviour").read_text().splitlines() if (folder / "behaviour").exists() else []
        behaviour = (lines or ["well"])[0].split()
        for path, *words in map(str.split, lines[1:]):
            behaviour = words if path == self.path else behaviour
        with open(folder / "requests", "a") as file:
            file.write(json.dumps({"path": self.path, "authorization": self.headers["authorization"],
                                   "time": time.time()}) + "\n")
        if behaviour[0] == "silence":
            time.sleep(3600)
        elif behaviour[0] == "status":
            self.send(int(behaviour[1]), b"{}", behaviour[2:])
        elif behaviour[0] == "page":
            self.send(404, b"<html>404 Not Found</html>")
        elif behaviour[0] == "garbage":
            self.send(200, b'{"hello": "world"}')
        elif behaviour[0] == "large":
            self.send(200, b" " * (4 << 20))
        elif wanted and self.headers["authorization"] != wanted:
            self.fail(401, 40101, "Unauthorized")
        else:
            self.route(body)

    def route(self, body):
        path = [urllib.parse.unquote(part) for part in urllib.parse.urlsplit(self.path).path.split("/")[1:]]
        match path:
            case ["schemas", "ids", number]:
                schema = store.schemas.get(int(number))
                self.give(schema, "schema")
            case ["subjects", subject, "versions"] if body is not None:
                self.give({"id": store.register(subject, body)}, "subject")
            case ["subjects", subject, "versions", version]:
                self.give(*store.version(subject, version))
            case ["subjects", subject] if body is not None:
                self.give({**body, "id": store.register(subject, body), "subject": subject, "version": 1}, "schema")
            case _:
                self.fail(404, 404, "HTTP 404 Not Found")

    def give(self, content, missing):
        if content is None:
            self.fail(*NOT_FOUND[missing])
        else:
            if "format=serialized" in self.path and content.get("schemaType") == "PROTOBUF":
                content = {**content, "schema": serialized(content)}
            self.send(200, json.dumps(content).encode())

    def fail(self, status, code, message):
        self.send(status, json.dumps({"error_code": code, "message": message}).encode())

    def send(self, status, body, retry_after=()):
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        for seconds in retry_after:
            self.send_header("Retry-After", seconds)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


folder = pathlib.Path(sys.argv[1])
store = Store()
if (folder / "schemas.json").exists():
    for schema in json.loads((folder / "schemas.json").read_text()):
        store.register(schema["subject"], schema)
wanted = None
if os.environ.get("USER_NAME"):
    pair = f"{os.environ['USER_NAME']}:{os.environ['SECRET']}"
    wanted = "Basic " + base64.b64encode(pair.encode()).decode()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
server.daemon_threads = True
if os.environ.get("TLS"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
(folder / "port.new").write_text(str(server.server_address[1]))
os.replace(folder / "port.new", folder / "port")
sys.stdin.read()
