// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import OpenSSL
import PushModel
import RecordFormats
import Testing

@testable import RegistrarRules

@Suite struct `An imported registration` {
    private typealias Desk = `A registration desk`

    private static let handler = ImportedRegistration.handler(of: .control)

    private static func removal() -> RegistrationDesk.Removal {
        RegistrationDesk.Removal(key: Desk.key, handler: handler, isOnlyIfKnown: true)
    }

    @Test func `an import has a handler that no app may name, one for each class`() {
        for tokenClass in TokenClass.builtIn {
            let handler = ImportedRegistration.handler(of: tokenClass)
            #expect(RecordKey.isPart(handler))
            #expect(!RegistrationClass.isHandlerName(handler))
            #expect(ImportedRegistration.tokenClass(ofHandler: handler) == tokenClass)
        }
        #expect(!RegistrationClass.isHandlerName("imported.later"))
        #expect(RegistrationClass.isHandlerName("imported"))
        #expect(ImportedRegistration.tokenClass(ofHandler: "Garage") == nil)
        #expect(ImportedRegistration.tokenClass(ofHandler: "imported.moon") == nil)
    }

    @Test func `an installation that is called after its token has a name of a key`() {
        let name = ImportedRegistration.installation(ofTokenDigest: SHA256Digest.of([1, 2, 3]))
        #expect(name == "token-039058c6f2c0cb492c533b0a4d14ef77")
        #expect(RecordKey.isPart(name) && InstallationKey.isName(name))
    }

    @Test func `an import that is there ends by a tombstone, and one that is not by none`() {
        var desk = Desk.owner()
        #expect(!desk.hasImports)
        desk.remove(Self.removal(), in: 0, as: 1)
        let nothing = Desk.split(desk.takeActions())
        #expect(nothing.writes.isEmpty && nothing.answers == [.removed])
        desk.take(Desk.record(nil, at: 0, owner: nil, handler: Self.handler))
        #expect(desk.hasImports)
        desk.remove(Self.removal(), in: 0, as: 2)
        let written = Desk.split(desk.takeActions())
        #expect(written.writes.count == 1 && written.answers.isEmpty)
        // Another request waits for the same tombstone.
        desk.remove(Self.removal(), in: 0, as: 3)
        #expect(Desk.split(desk.takeActions()).writes.isEmpty)
        desk.reported(written.writes[0], offset: 1)
        #expect(Desk.split(desk.takeActions()).answers == [.removed, .removed])
        #expect(!desk.hasImports)
    }

    @Test func `a partition that is not read yet may have imports`() {
        var desk = Desk.owner()
        desk.assigned(1, logEnd: 1)
        #expect(desk.hasImports)
        desk.caughtUp(1, now: Desk.now)
        #expect(!desk.hasImports)
    }

    @Test func `a partition that goes takes its imports along`() {
        var desk = Desk.owner()
        desk.take(Desk.record(nil, at: 0, owner: nil, handler: Self.handler))
        desk.lost(0)
        #expect(!desk.hasImports)
    }
}
