// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import OpenSSL
import PushModel
import RecordFormats
import Testing

@testable import RegistrarRules

@Suite struct `An imported registration` {
    private typealias Arbiter = `A registration arbiter`

    private static let handler = ImportedRegistration.handler(of: .control)

    private static func removal() -> RegistrationArbiter.Removal {
        RegistrationArbiter.Removal(key: Arbiter.key, handler: handler, isOnlyIfKnown: true)
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
        var arbiter = Arbiter.owner()
        #expect(!arbiter.hasImports)
        arbiter.remove(Self.removal(), in: 0, as: 1)
        let nothing = Arbiter.split(arbiter.takeActions())
        #expect(nothing.writes.isEmpty && nothing.answers == [.removed])
        arbiter.take(Arbiter.record(nil, at: 0, owner: nil, handler: Self.handler))
        #expect(arbiter.hasImports)
        arbiter.remove(Self.removal(), in: 0, as: 2)
        let written = Arbiter.split(arbiter.takeActions())
        #expect(written.writes.count == 1 && written.answers.isEmpty)
        // Another request waits for the same tombstone.
        arbiter.remove(Self.removal(), in: 0, as: 3)
        #expect(Arbiter.split(arbiter.takeActions()).writes.isEmpty)
        arbiter.reported(written.writes[0], offset: 1)
        #expect(Arbiter.split(arbiter.takeActions()).answers == [.removed, .removed])
        #expect(!arbiter.hasImports)
    }

    @Test func `a partition that is not read yet may have imports`() {
        var arbiter = Arbiter.owner()
        arbiter.assigned(1, logEnd: 1)
        #expect(arbiter.hasImports)
        arbiter.caughtUp(1, now: Arbiter.now)
        #expect(!arbiter.hasImports)
    }

    @Test func `a partition that goes takes its imports along`() {
        var arbiter = Arbiter.owner()
        arbiter.take(Arbiter.record(nil, at: 0, owner: nil, handler: Self.handler))
        arbiter.lost(0)
        #expect(!arbiter.hasImports)
    }
}
