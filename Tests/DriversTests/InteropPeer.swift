// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Foundation
internal import PushModel

/// A stand-in for APNs built on Python's `h2`, which shares no code with the transports or the
/// simulator. It checks each request exactly and each frame by its own state machine.
enum PythonPeer {
    /// The interpreter that Debian's packages belong to.
    static let interpreter = "/usr/bin/python3"

    struct Report: Decodable {
        /// What h2 called a violation of HTTP/2, and everything else that ended badly.
        let protocolErrors: [String]
        /// What was wrong with requests: header by header.
        let complaints: [String]
        let requests: Int
        let connections: Int
    }

    static func start() throws -> ForeignServer {
        try ForeignServer { files, port in
            (
                interpreter,
                ["-c", program, port, files.certificate, files.key, files.folder + "/report"]
            )
        }
    }

    /// Waits for the first connection's end.
    static func report(of server: ForeignServer) throws -> Report {
        let file = URL(filePath: server.file("report"))
        _ = SimulatorFixture.eventually { FileManager.default.fileExists(atPath: file.path) }
        return try JSONDecoder().decode(Report.self, from: Data(contentsOf: file))
    }

    /// Whether that is how it has answered the push with this number.
    static func answered(_ outcome: PushOutcome, to number: Int) -> Bool {
        guard outcome.kind == .answered else { return false }
        let found = (outcome.status, outcome.reason, outcome.apnsTimestamp)
        return switch number % 10 {
        case 3: found == (410, .unregistered, 1_700_000_000_123)
        case 7: found == (400, .badDeviceToken, -1)
        default: found == (200, .none, -1)
        }
    }

    private static let program = #"""
        import json, os, re, socket, ssl, sys, threading
        import h2.config, h2.connection, h2.events, h2.exceptions, h2.settings

        port, certificate, key, report_path = int(sys.argv[1]), *sys.argv[2:5]
        report = {"protocolErrors": [], "complaints": [], "requests": 0, "connections": 0}
        lock = threading.Lock()
        TOKEN = re.compile("/3/device/((?:ab){30}([0-9a-f]{4}))")
        EXACT = {
            ":method": "POST", ":scheme": "https", ":authority": "localhost",
            "apns-push-type": "controls", "apns-topic": "com.example.Home.push-type.controls",
            "apns-priority": "10", "apns-expiration": "0",
        }
        SHAPED = {
            ":path": TOKEN, "authorization": re.compile(r"bearer [\w-]+\.[\w-]+\.[\w-]{86}"),
            "apns-id": re.compile("01234567-89ab-8def-8000-0000000[0-9a-f]{5}"),
        }
        BODY = b'{"aps":{"content-changed":true}}'

        def complain(kind, text):
            with lock:
                report[kind].append(text)

        def judge(headers, body):
            seen = dict(headers)
            if len(seen) != len(headers):
                complain("complaints", "duplicate header in %r" % headers)
            for name in seen.keys() - EXACT.keys() - SHAPED.keys():
                complain("complaints", "unknown header " + name)
            for name, value in EXACT.items():
                if seen.get(name) != value:
                    complain("complaints", "%s is %r" % (name, seen.get(name)))
            for name, shape in SHAPED.items():
                if not shape.fullmatch(seen.get(name, "")):
                    complain("complaints", "%s is %r" % (name, seen.get(name)))
            if body != BODY:
                complain("complaints", "body is %r" % body)

        def answer(path):
            number = int(TOKEN.fullmatch(path).group(2), 16) if TOKEN.fullmatch(path) else 0
            if number % 10 == 3:
                return 410, {"reason": "Unregistered", "timestamp": 1700000000123}
            if number % 10 == 7:
                return 400, {"reason": "BadDeviceToken"}
            return 200, None

        class Client:
            def __init__(self, connection):
                self.socket = connection
                self.state = h2.connection.H2Connection(
                    h2.config.H2Configuration(client_side=False, header_encoding="ascii"))
                self.open = {}

            def serve(self):
                if self.socket.selected_alpn_protocol() != "h2":
                    return complain("protocolErrors", "no h2 in ALPN")
                self.state.local_settings = h2.settings.Settings(
                    client=False,
                    initial_values={h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 50})
                self.state.initiate_connection()
                self.flush()
                while True:
                    data = self.socket.recv(65536)
                    if not data:
                        return
                    for event in self.state.receive_data(data):
                        self.take(event)
                    self.flush()

            def flush(self):
                self.socket.sendall(self.state.data_to_send())

            def take(self, event):
                if isinstance(event, h2.events.RequestReceived):
                    self.open[event.stream_id] = (event.headers, bytearray())
                elif isinstance(event, h2.events.DataReceived):
                    self.open[event.stream_id][1].extend(event.data)
                    self.state.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamReset):
                    if self.open.pop(event.stream_id, None):
                        complain("protocolErrors", "reset of a request under way")
                elif isinstance(event, h2.events.StreamEnded):
                    headers, body = self.open.pop(event.stream_id)
                    judge(headers, bytes(body))
                    with lock:
                        report["requests"] += 1
                    self.send(event.stream_id, dict(headers))
                elif isinstance(event, h2.events.ConnectionTerminated) and event.error_code:
                    complain("protocolErrors", "GOAWAY %s" % event.error_code)
                elif isinstance(event, h2.events.UnknownFrameReceived):
                    complain("protocolErrors", "unknown frame")

            def send(self, stream, headers):
                status, body = answer(headers.get(":path", ""))
                head = [(":status", str(status)), ("apns-id", headers.get("apns-id", "").upper())]
                self.state.send_headers(stream, head, end_stream=body is None)
                if body is not None:
                    self.state.send_data(stream, json.dumps(body).encode(), end_stream=True)

        def serve(connection, context):
            client = None
            try:
                connection = context.wrap_socket(connection, server_side=True)
                with lock:
                    report["connections"] += 1
                client = Client(connection)
                client.serve()
            except h2.exceptions.ProtocolError as error:
                complain("protocolErrors", repr(error))
            except OSError as error:
                # Whoever closes with nothing under way may do it as it likes.
                if client is None or client.open:
                    complain("protocolErrors", "the connection broke: %r" % error)
            finally:
                connection.close()
                with lock:
                    # The rename makes it whole for whoever reads.
                    with open(report_path + ".new", "w") as file:
                        json.dump(report, file)
                    os.rename(report_path + ".new", report_path)

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(["h2"])
        listener = socket.create_server(("127.0.0.1", port))
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=[connection, context], daemon=True).start()
        """#
}
