// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import Logging
internal import PushModel
internal import RegistrarRules
internal import Testing

@testable internal import Registrar
@testable internal import RegistrarAccess

@Suite struct `The subjects that a caller may write` {
    private static let key = InstallationKey(
        environment: .production, app: "com.example.Home", installation: "6F1C")

    /// A registrar that knows of no owner: what it does not refuse is told to come again.
    private func service() throws -> RegistrarService {
        let reader = BodyReader()
        return RegistrarService(
            callers: AccessCheck(access: try AccessControl(AccessSettings()) { _ in }),
            owners: KeyOwners(
                mailbox: RegistrarMailbox(), directory: OwnerDirectory(),
                forwarder: Forwarder(caFile: nil, logger: Logger(label: "tests")),
                store: RecordStore(),
                reader: reader, ownURL: nil, seal: nil, patience: .zero),
            limits: RegistrarLimits(), reader: reader,
            rates: CallerRates(ofCaller: 100, ofInstallation: 100), tally: RequestTally(),
            logger: Logger(label: "registrar") { _ in SwiftLogNoOpLogHandler() })
    }

    /// What a caller who may write subjects that begin with `door-` is answered.
    private func status(
        _ route: RegistrarRoute, _ body: String
    ) async throws -> Int {
        let caller = Caller(
            id: "jwt:user-1", rights: Rights(subjectPrefixes: [Array("door-".utf8)]))
        let question = HTTPRequest(method: .put, path: "/", body: Array(body.utf8))
        do {
            let request = try RegistrarRequest(
                question, route: route, caller: RegistrarCaller(caller))
            return try await service().perform(request, Self.key).status
        } catch let problem as Problem {
            return problem.status
        }
    }

    @Test(arguments: [
        (#"[{"kind":"door","subjects":["door-42"]}]"#, 503),
        (#"[{"kind":"door","subjects":["lamp-42"]}]"#, 403),
        (#"[{"kind":"door","subjects":["door-42","door"]}]"#, 403),
        (#"[{"kind":"door","subjects":["door-42"]},{"kind":"lamp"}]"#, 403),
    ])
    func `a caller whose subjects are limited writes no others, of one handler or of all`(
        shows: String, status: Int
    ) async throws {
        let targets = #"[{"token":"00fc13","shows":\#(shows)}]"#
        #expect(
            try await self.status(
                .handler(Self.key, .controls, "Garage"), #"{"sequence":1,"targets":\#(targets)}"#)
                == status)
        #expect(
            try await self.status(
                .all(Self.key, .controls), #"{"sequence":1,"handlers":{"Garage":\#(targets)}}"#)
                == status)
    }
}
