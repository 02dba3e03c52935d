// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Synchronization
internal import Testing

@testable import RegistrarAccess

@Suite struct `A source of token keys` {
    /// Answers what it is told to, and counts.
    private final class Endpoint: Sendable {
        private let state: Mutex<(answer: Result<[UInt8], FileFault>, count: Int)>

        init(_ answer: Result<[UInt8], FileFault>) { state = Mutex((answer, 0)) }

        var count: Int { state.withLock { $0.count } }

        func answer(_ answer: Result<[UInt8], FileFault>) { state.withLock { $0.answer = answer } }

        @Sendable func fetch() -> Result<[UInt8], FileFault> {
            state.withLock { state in
                state.count += 1
                return state.answer
            }
        }
    }

    /// A source that an expectation may change.
    private final class Source {
        private var source: TokenKeySource

        init(_ settings: AccessSettings.JWT, _ endpoint: Endpoint) {
            source = TokenKeySource(settings, fetch: endpoint.fetch)
        }

        func look(unknownKeySeen: Bool = false, after seconds: Int64) -> TokenKeySource.Look? {
            source.look(
                unknownKeySeen: unknownKeySeen, now: AccessFixture.now + .seconds(seconds))
        }
    }

    private static let set = TokenIssuer.set(try! TokenIssuer.es256().jwk())
    private static let settings = AccessSettings.JWT(
        keys: .url("https://login.example.com/keys"), issuer: "i", audience: "a")

    private static func isNew(_ look: TokenKeySource.Look?) -> Bool {
        if case .new? = look { true } else { false }
    }

    private static func isSame(_ look: TokenKeySource.Look?) -> Bool {
        if case .same? = look { true } else { false }
    }

    @Test func `keys are fetched at the start and once in an interval`() {
        let endpoint = Endpoint(.success(Self.set))
        let source = Source(Self.settings, endpoint)
        #expect(Self.isNew(source.look(after: 0)))
        for seconds in [1, 31, 599] as [Int64] {
            #expect(source.look(after: seconds) == nil)
        }
        #expect(Self.isSame(source.look(after: 600)))
        #expect(endpoint.count == 2)
    }

    @Test func `an unknown key has keys fetched, though not more often than every 30 seconds`() {
        let endpoint = Endpoint(.success(Self.set))
        let source = Source(Self.settings, endpoint)
        _ = source.look(after: 0)
        // It is remembered until it is time.
        #expect(source.look(unknownKeySeen: true, after: 10) == nil)
        #expect(source.look(after: 29) == nil)
        #expect(Self.isSame(source.look(after: 30)))
        for second in 31..<60 as Range<Int64> {
            #expect(source.look(unknownKeySeen: true, after: second) == nil)
        }
        #expect(Self.isSame(source.look(unknownKeySeen: true, after: 60)))
        #expect(source.look(after: 120) == nil)
        #expect(endpoint.count == 3)
    }

    @Test func `keys that cannot be fetched are asked for again after 30 seconds`() throws {
        let endpoint = Endpoint(.failure(FileFault("is away")))
        let source = Source(Self.settings, endpoint)
        guard case .fault(let fault)? = source.look(after: 0)
        else {
            Issue.record("no fault")
            return
        }
        #expect(fault == FileFault("is away"))
        #expect(source.look(unknownKeySeen: true, after: 29) == nil)
        endpoint.answer(.success(Array("{}".utf8)))
        guard case .fault? = source.look(after: 30) else {
            Issue.record("no fault")
            return
        }
        endpoint.answer(.success(Self.set))
        #expect(Self.isNew(source.look(after: 60)))
        #expect(source.look(after: 90) == nil)
    }

    @Test func `a clock that is set back does not keep old keys`() {
        let endpoint = Endpoint(.success(Self.set))
        let source = Source(Self.settings, endpoint)
        _ = source.look(after: 0)
        #expect(Self.isSame(source.look(after: -3600)))
    }

    @Test func `an endpoint that nobody serves is told in one line`() {
        var settings = Self.settings
        settings.keys = .url("https://127.0.0.1:1/keys")
        var source = TokenKeySource(settings)
        guard case .fault(let fault)? = source.look(unknownKeySeen: false, now: AccessFixture.now)
        else {
            Issue.record("no fault")
            return
        }
        #expect(fault.description.hasPrefix("cannot be fetched: "))
    }
}
