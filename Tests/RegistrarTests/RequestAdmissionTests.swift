// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import Logging
internal import PushModel
internal import RegistrarRules
internal import Testing

@testable internal import Registrar
@testable internal import RegistrarAccess

@Suite struct `Admission of requests by their heads` {
    private static let base = "/v1/apps/com.example.Home/environments/production"
    private static let installation = "\(base)/installations/6F1C"

    private let folder: AccessFolder
    private let key: String
    private let service: RegistrarService

    init() throws {
        folder = try AccessFolder()
        let made = try #require(ServiceKey.make(id: "tests", apps: ["com.example.Home"]))
        key = made.key.text
        let file = try folder.write(made.line, "keys")
        let access = try AccessControl(AccessSettings(serviceKeysFile: file)) { _ in }
        let reader = BodyReader()
        service = RegistrarService(
            callers: AccessCheck(access: access),
            owners: KeyOwners(
                mailbox: RegistrarMailbox(), directory: OwnerDirectory(),
                forwarder: Forwarder(caFile: nil, logger: Logger(label: "tests")),
                store: RecordStore(), reader: reader,
                ownURL: "http://10.0.0.2:8443",
                seal: PeerSeal(Secret("a-token-that-the-registrars-share")), patience: .zero),
            limits: RegistrarLimits(), reader: reader,
            rates: CallerRates(ofCaller: 100, ofInstallation: 100), tally: RequestTally(),
            logger: Logger(label: "registrar") { _ in SwiftLogNoOpLogHandler() })
    }

    private func ask(
        _ method: HTTPRequest.Method, _ path: String, _ headers: [(String, String)] = [],
        query: String = ""
    ) -> HTTPRequest {
        var question = HTTPRequest(
            method: method, path: path,
            headers: HTTPHeaders(
                [("content-type", "application/json"), ("content-length", "100")] + headers))
        question.rawQuery = query
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
            question.query[parts[0]] = question.query[parts[0]] ?? parts.last ?? ""
        }
        return question
    }

    private func status(_ question: HTTPRequest) -> Int? {
        guard case .refused(let answer) = service.admit(question) else { return nil }
        return answer.status
    }

    private func admitted(_ question: HTTPRequest) -> HTTPAdmitted? {
        guard case .admitted(let admitted) = service.admit(question) else { return nil }
        return admitted
    }

    @Test func `who shows nothing is refused by the head, and counted`() {
        for path in [Self.installation + "/controls/G", Self.installation + "/controls"] {
            #expect(status(ask(.put, path)) == 401)
            #expect(status(ask(.put, path, [("authorization", "Bearer llr_unknown")])) == 401)
        }
        #expect(status(ask(.post, Self.base + "/batch")) == 401)
        #expect(status(ask(.put, "/v2/x")) == 404)
        #expect(status(ask(.post, Self.installation + "/controls")) == 405)
        // Before what else is wrong with the path.
        #expect(status(ask(.post, Self.installation + ",/controls")) == 405)
    }

    @Test func `a caller pays for what it sends, and may send no other app's`() {
        let bearer = ("authorization", "Bearer \(key)")
        let own = admitted(ask(.put, Self.installation + "/controls/G", [bearer]))
        #expect(own?.caller == "service:tests" && own?.bodyBytesMax == 256 << 10)
        #expect(own?.isReplica == false)
        let other = Self.installation.replacing("com.example.Home", with: "com.example.Lights")
        #expect(status(ask(.put, other + "/controls/G", [bearer])) == 403)
    }

    @Test func `of strangers little is read`() {
        let challenge = admitted(ask(.post, Self.installation + "/attest/challenge"))
        #expect(challenge?.caller == "" && challenge?.bodyBytesMax == 1024)
        let attestation = admitted(ask(.post, Self.installation + "/attest"))
        #expect(attestation?.caller == "" && attestation?.bodyBytesMax == 64 << 10)
    }

    @Test func `what no replica has signed is passed on by none`() {
        let path = Self.installation + "/controls/G"
        for authorization in ["Bearer a-token-that-the-registrars-share", "Bearer \(key)"] {
            for kind in ["handler", "list", "x"] {
                #expect(
                    status(
                        ask(
                            .put, path,
                            [("lamplighter-forwarded", kind), ("authorization", authorization)]))
                        == 401)
            }
        }
        let passed = PeerSeal.Passed(
            method: "PUT", target: path, owner: "http://10.0.0.2:8443", kind: "handler",
            caller: "service:home", date: AccessCheck.now(), digest: PeerSeal.digest([]))
        let headers = PeerSeal(Secret("a-token-that-the-registrars-share")).headers(of: passed)
        let replica = admitted(ask(.put, path, headers.map { ($0.name, $0.value) }))
        #expect(replica?.caller == "registrar for service:home" && replica?.isReplica == true)
    }

    @Test func `a parameter of the query is there once`() {
        let bearer = ("authorization", "Bearer \(key)")
        let path = Self.installation + "/controls/G"
        #expect(
            status(ask(.delete, path, [bearer], query: "belowSequence=1&belowSequence=99")) == 422)
        #expect(status(ask(.delete, path, [bearer], query: "belowSequence=99")) == nil)
    }

    @Test(arguments: ["controls", "widgets", "device", "liveActivities"])
    func `what a default handler is called in a key is no handler's name`(tokenClass: String) {
        for other in RegistrationClass.allCases {
            let path = Self.installation + "/\(other.rawValue)/default.\(tokenClass)"
            #expect(throws: RegistrarRoute.Failure.self) { try RegistrarRoute(path: path) }
        }
        #expect(throws: Never.self) {
            try RegistrarRoute(path: Self.installation + "/\(tokenClass)/default")
        }
    }
}
