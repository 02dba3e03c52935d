// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import Nghttp2
internal import OpenSSL
internal import PushModel
import TestCertificates

@testable import APNSSimulator

/// A whole connection's bytes from a client of the simulator. The input: how many bytes come at
/// once (a byte), what the client sends, from the preface on.
///
/// No more streams are open than allowed, every request that is complete is answered once, and what
/// is kept of one is bounded.
enum RequestsTarget {
    static let options: SimulatorOptions = {
        var options = SimulatorOptions()
        options.apps = [SimulatorApp(bundleID: "com.example.Home", teamID: "TEAMTEAM01")]
        options.streamLimit = 8
        options.deviceTokensMax = 64
        return options
    }()
    private static let tls: TLSContext = {
        let certificate = try! CertificateAuthority().serverCertificate()
        return try! .server(
            certificatePEM: certificate.certificatePEM, keyPEM: certificate.keyPEM)
    }()

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        let chunkBytes = 1 + Int(input.byte()) * 16
        let shared = SimulatorShared(
            options: options, context: tls, registry: ProviderTokensTarget.registry,
            logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() })
        let turn = ServingTurn(options: options)
        turn.wallSeconds = RecordWorld.now.seconds
        let server = FuzzServer(shared: shared, turn: turn)
        while !input.rest.isEmpty, !server.hasFailed {
            try server.receive(ExactBytes(input.bytes(chunkBytes)))
        }
    }
}

/// What a serving thread does with a connection, without its socket and its log.
private final class FuzzServer {
    private let turn: ServingTurn
    private let judge: RequestJudge
    private let openRequests: OpenRequests
    private let session: ServerSession
    private var headers = AnswerHeaders()
    private var buffer = [UInt8](repeating: 0, count: 16 << 10)
    private(set) var hasFailed = false

    init(shared: SimulatorShared, turn: ServingTurn) {
        self.turn = turn
        judge = RequestJudge(shared: shared, now: turn.now)
        let credential = ConnectionCredential(
            registry: shared.registry, environment: .production)
        openRequests = OpenRequests(
            streamLimit: 1, credential: credential, judge: judge, turn: turn, keepsHeaders: true)
        session = ServerSession(requests: openRequests, streamLimit: 1)
    }

    func receive(_ bytes: ExactBytes) throws {
        do throws(HTTP2Error) { try session.receive(bytes.lent) } catch {
            hasFailed = true
            try promiseLine(error.description)
        }
        try promise(
            openRequests.openCount <= openRequests.streamLimit,
            "\(openRequests.openCount) open streams")
        for request in openRequests.ended { try answer(request) }
        openRequests.forgetEnded()
        try serialise()
        if openRequests.credential.key != nil, openRequests.streamLimit == 1 {
            openRequests.streamLimit = turn.streamLimit
            session.announce(streamLimit: turn.streamLimit)
        }
    }

    private func answer(_ number: Int) throws {
        let request = openRequests.requests[number]
        try promise(request.isOpen, "a request that ends after its stream")
        try promise(request.body.count <= PendingRequest.bodyBytesMax, "a body without end")
        try promise(request.token.count <= 400, "a token without end")
        try promise(request.apnsID.count == 36, "an apns-id of \(request.apnsID.count) bytes")
        let answer = judge.answer(
            request, environment: .production, now: RecordWorld.now.milliseconds * 1_000_000
        ).answer
        headers.removeAll()
        headers.append(status: answer.status)
        request.apnsID.withUnsafeBytes { headers.append("apns-id", $0, indexed: false) }
        session.respond(stream: request.stream, headers, body: answer.body)
    }

    private func serialise() throws {
        do throws(HTTP2Error) {
            while session.wantsToWrite {
                let result = buffer.withUnsafeMutableBytes { buffer in
                    Result { () throws(HTTP2Error) in try session.serialise(into: buffer) }
                }
                if try result.get() == 0 { break }
            }
        } catch {
            hasFailed = true
            try promiseLine(error.description)
        }
    }
}
