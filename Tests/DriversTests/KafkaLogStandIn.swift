// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import PushModel

@testable import KafkaLog

/// A broker that serves one partition of one topic, whose log is written out byte for byte. The
/// embedded Kafka keeps what producers send, but knows no aborted transactions, no control records
/// and no time of its own.
final class KafkaLogStandIn {
    /// A record batch in format 2, at the next offsets.
    struct Batch: Encodable {
        enum Kind: String, Encodable {
            case plain, transaction, commit, abort
        }

        var kind = Kind.plain
        /// The transaction's producer.
        var producer = -1
        /// The values; a key is the value's number among them.
        var values: [String] = []
        var headers: [[String]] = []
        /// In milliseconds since 1970.
        var time = 1_700_000_000_000
        /// Whether the broker has set the time when it appended the batch.
        var isAppendTime = false
        var isCompressed = false
    }

    private let server: PythonServer

    init(topic: String, _ batches: [Batch]) throws {
        server = try PythonServer(program: Self.program)
        try server.write(
            String(decoding: JSONEncoder().encode(batches), as: UTF8.self), to: "batches.json")
        try server.start(environment: ["TOPIC": topic])
    }

    var settings: KafkaClientSettings {
        KafkaClientSettings(
            bootstrap: "127.0.0.1:\(server.port)", group: "fleet",
            properties: ["fetch.wait.max.ms": "20"])
    }

    /// Of each API the versions without tagged fields, as brokers spoke them in 2017 (Kafka 0.11,
    /// the first with transactions).
    private static let program = #"""
        import gzip, json, os, pathlib, socketserver, struct, sys, threading

        folder = pathlib.Path(sys.argv[1])
        TOPIC = os.environ["TOPIC"].encode()
        # API: the lowest and the highest version.
        VERSIONS = {0: (0, 3), 1: (4, 4), 2: (1, 1), 3: (2, 2), 18: (0, 0)}
        PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = VERSIONS
        UNSUPPORTED_VERSION = 35

        CRC = []
        for number in range(256):
            for _ in range(8):
                number = number >> 1 ^ 0x82F63B78 if number & 1 else number >> 1
            CRC.append(number)

        def crc32c(data):
            value = 0xFFFFFFFF
            for byte in data:
                value = CRC[(value ^ byte) & 0xFF] ^ value >> 8
            return value ^ 0xFFFFFFFF

        def varint(number):
            number = number << 1 ^ number >> 63
            out = bytearray()
            while number > 127:
                out.append(number & 127 | 128)
                number >>= 7
            return bytes(out + bytes([number]))

        def field(data):
            return varint(-1) if data is None else varint(len(data)) + data

        def record(index, key, value, headers):
            body = b"\0" + varint(0) + varint(index) + field(key) + field(value) + varint(len(headers))
            for name, text in headers:
                body += field(name.encode()) + field(text.encode())
            return varint(len(body)) + body

        def encode(offset, batch):
            kind = batch["kind"]
            attributes = (1 if batch["isCompressed"] else 0) | (8 if batch["isAppendTime"] else 0)
            if kind != "plain":
                attributes |= 16
            if kind in ("commit", "abort"):
                attributes |= 32
                marker = struct.pack(">hh", 0, 1 if kind == "commit" else 0)
                records = [record(0, marker, struct.pack(">hi", 0, 0), [])]
            else:
                records = [record(index, str(index).encode(), value.encode(), batch["headers"])
                           for index, value in enumerate(batch["values"])]
            count, content = len(records), b"".join(records)
            if batch["isCompressed"]:
                content = gzip.compress(content)
            # Of a batch with the broker's time the first is the producer's still.
            first = 1 if batch["isAppendTime"] else batch["time"]
            body = struct.pack(">hiqqqhii", attributes, count - 1, first, batch["time"],
                               batch["producer"], 0, 0, count) + content
            return count, (struct.pack(">qiib", offset, 9 + len(body), 0, 2)
                           + struct.pack(">I", crc32c(body)) + body)

        LOG, ABORTED, begun, end = [], [], {}, 0
        for batch in json.loads((folder / "batches.json").read_text()):
            count, data = encode(end, batch)
            LOG.append((end, end + count, data))
            if batch["kind"] == "transaction":
                begun.setdefault(batch["producer"], end)
            elif batch["kind"] == "abort":
                ABORTED.append((batch["producer"], begun.pop(batch["producer"])))
            elif batch["kind"] == "commit":
                begun.pop(batch["producer"])
            end += count
        # Where the first transaction begins that is still open.
        STABLE = min(begun.values(), default=end)

        def text(data):
            return struct.pack(">h", len(data)) + data

        class Broker(socketserver.BaseRequestHandler):
            def handle(self):
                while head := self.receive(4):
                    request = self.receive(struct.unpack(">i", head)[0])
                    api, version, number, length = struct.unpack(">hhih", request[:10])
                    body = request[10 + max(length, 0):]
                    answer = struct.pack(">i", number) + self.answer(api, version, body)
                    self.request.sendall(struct.pack(">i", len(answer)) + answer)

            def receive(self, count):
                data = b""
                while len(data) < count:
                    more = self.request.recv(count - len(data))
                    if not more:
                        return b""
                    data += more
                return data

            def answer(self, api, version, body):
                port = self.server.server_address[1]
                if api == API_VERSIONS:
                    error = UNSUPPORTED_VERSION if version > 0 else 0
                    return struct.pack(">hi", error, len(VERSIONS)) + b"".join(
                        struct.pack(">hhh", key, *bounds) for key, bounds in VERSIONS.items())
                if api == METADATA:
                    broker = struct.pack(">ii", 1, 1) + text(b"127.0.0.1") + struct.pack(">ih", port, -1)
                    partition = struct.pack(">ihiiiiii", 1, 0, 0, 1, 1, 1, 1, 1)
                    topic = struct.pack(">h", 0) + text(TOPIC) + b"\0" + partition
                    return broker + text(b"stand-in") + struct.pack(">ii", 1, 1) + topic
                if api == LIST_OFFSETS:
                    # replica, topics, name, partitions, partition, time
                    asked = struct.unpack(">q", body[-8:])[0]
                    offset = 0 if asked == -2 else STABLE
                    return (struct.pack(">i", 1) + text(TOPIC)
                            + struct.pack(">iihqq", 1, 0, 0, -1, offset))
                assert api == FETCH, api
                isolation = body[16]
                if len(body) < 30:
                    return struct.pack(">ii", 0, 0)
                offset = struct.unpack(">q", body[-12:-4])[0]
                last = STABLE if isolation == 1 else end
                data = b"".join(data for first, after, data in LOG if after > offset and first < last)
                # Transactions whose records may be among these.
                aborted = ABORTED if isolation == 1 else []
                head = struct.pack(">ii", 0, 1) + text(TOPIC) + struct.pack(">iihqq", 1, 0, 0, end, STABLE)
                lists = struct.pack(">i", len(aborted)) + b"".join(
                    struct.pack(">qq", *pair) for pair in aborted)
                if not data:
                    threading.Event().wait(0.02)
                return head + lists + struct.pack(">i", len(data)) + data

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = daemon_threads = True

        server = Server(("127.0.0.1", 0), Broker)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (folder / "port.new").write_text(str(server.server_address[1]))
        os.replace(folder / "port.new", folder / "port")
        sys.stdin.read()
        """#
}
