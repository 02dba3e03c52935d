// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

/// The index of who shows what: (app, subject) → tokens, built from registrations and suppressions.
///
/// It is owned by one thread. Every answer follows from the calls made so far and the seed. A query
/// allocates nothing.
///
/// **Memory** at 10 M subscriptions of 5 M tokens (32 bytes), 4 M subjects (20 bytes) and 2.5 M
/// registrations, in bytes for each subscription:
///
///     token records          56 × 0.5  = 28.0    24 header + 32
///     subject records        32 × 0.4  = 12.8    12 header + 20
///     subjects' lists                     4.2    none for one; 4 each in blocks of 2, 4, 6, 8, 12 …
///     registration blocks   (16 + 16 × 4) × 0.25 = 20.0
///     three index tables    9.7 × 1.15 = 11.2    8 a slot, 7/9 to 7/8 full
///                                       -----
///                                        76.2    and freed blocks, which later ones reuse
///
/// `furtherLists` come on top: 20 bytes for each token that a list has, a row and an entry; and, for
/// each installation of a name of 36 bytes, 58: 12 header + 36 + a slot of the index.
///
/// Structures grow in place at fixed addresses, so the peak is the same figure. Measured: 75.1 (of
/// the 4 M subjects 3.67 M were drawn), and 76.4 after every registration had changed all its
/// subjects; 2 M subscriptions a second. Finding a subject costs two dependent cache misses, one in
/// the index and one in the record; those of many prefetched ones overlap (`prefetch`).
package struct Audience: ~Copyable, Sendable {
    var tokens: TokenTable
    var subjects: SubjectTable
    var registrations: RegistrationTable
    var kinds: KindTable
    /// The subscriptions of the snapshot being applied, sorted; kept to reuse its memory.
    var incoming: [Subscription] = []
    /// Tokens whose suppression the snapshot being applied has lifted; kept to reuse its memory.
    var lifted: [TokenID] = []
    let routes: RouteGrid
    let furtherLists: FurtherLists
    let keySeed: UInt64
    private let byAddress = PassedByAddress()

    /// The longest device token accepted, in bytes; APNs announced 100.
    package static let tokenBytesMax = 512
    package static let subjectBytesMax = 256
    package static let kindBytesMax = KindTable.bytesMax

    /// - Parameters:
    ///   - hashSeed: unpredictable, since registrations bring keys that strangers choose.
    ///   - furtherLists: those that are kept beside the lists of subjects.
    package init(routing: RoutingTable, hashSeed: UInt64, furtherLists: FurtherLists) {
        tokens = TokenTable(seed: hashSeed, routes: routing.routes.count)
        subjects = SubjectTable(seed: hashSeed)
        registrations = RegistrationTable()
        kinds = KindTable(apps: routing.apps.count, seed: hashSeed)
        routes = RouteGrid(routing)
        self.furtherLists = furtherLists
        keySeed = hashSeed
    }

    /// An index of tables that were read from a file.
    init(
        _ tables: consuming IndexTables.Tables, routing: RoutingTable, hashSeed: UInt64,
        furtherLists: FurtherLists
    ) {
        tokens = tables.tokens
        subjects = tables.subjects
        registrations = tables.registrations
        kinds = tables.kinds
        routes = RouteGrid(routing)
        self.furtherLists = furtherLists
        keySeed = hashSeed
    }

    // MARK: Subjects

    package func subject(_ app: AppID, _ bytes: UnsafeRawBufferPointer) -> SubjectID? {
        list(.subject, app, bytes, hash: hash(app, bytes, .subject))
    }

    /// The list of this name: of a subject, or one of `furtherLists`, which have a token once for each
    /// of its kinds in a registration; nil where it has no entry or is not kept.
    ///
    /// - Parameter hash: `hash` of the same scope, app and name, which callers may need for more than
    ///   this.
    package func list(
        _ scope: ListScope, _ app: AppID, _ name: UnsafeRawBufferPointer, hash: UInt64
    ) -> SubjectID? {
        subjects.find(app, name, scope, hash: hash)
    }

    /// The seeded hash of a subject, of a kind's name or of an installation; they differ even for the
    /// same bytes. Outsiders cannot predict it. It does not change during the life of the process.
    package func hash(
        _ app: AppID, _ name: UnsafeRawBufferPointer, _ scope: ListScope
    ) -> UInt64 {
        subjects.hash(app, name, scope)
    }

    /// What this is the list of.
    package func scope(of subject: SubjectID) -> ListScope { subjects.scope(of: subject) }

    package func app(of subject: SubjectID) -> AppID { subjects.app(of: subject) }

    package func count(_ subject: SubjectID) -> Int { subjects.count(subject) }

    /// - Parameter position: below `count(subject)`.
    package func entry(_ subject: SubjectID, at position: Int) -> AudienceEntry {
        registrations[subjects.subscription(subject, at: position)].entry
    }

    /// The bytes of the subject, or of the name of another list; valid until the next change.
    package func subjectBytes(of subject: SubjectID) -> UnsafeRawBufferPointer {
        subjects.bytes(of: subject)
    }

    /// Sets whether a cursor goes through the subject's list. While one does, moved entries are reported
    /// and the subject is kept even without entries.
    package mutating func setCursor(_ subject: SubjectID, _ value: Bool) {
        subjects.setCursor(subject, value)
    }

    package func hasCursor(_ subject: SubjectID) -> Bool { subjects.hasCursor(subject) }

    // MARK: Kinds

    /// The most kinds of one app that can be told apart at once.
    package static let kindsMax = KindTable.countMax

    /// The kinds of an app that some registration shows.
    package func kindNames(of app: AppID) -> [String] { kinds.names(of: app) }

    /// Nil for a kind that no registration of this app shows.
    package func kind(_ app: AppID, named name: String) -> KindID? {
        var name = name
        return name.withUTF8 { utf8 in kinds.find(app, UnsafeRawBufferPointer(utf8)) }
    }

    package func name(of kind: KindID, in app: AppID) -> String {
        String(decoding: nameBytes(of: kind, in: app), as: UTF8.self)
    }

    /// The bytes of the kind's name, valid until the next change.
    package func nameBytes(of kind: KindID, in app: AppID) -> UnsafeRawBufferPointer {
        kinds.name(of: kind, in: app)
    }

    /// Whether there is something for `reclaimKinds()` to do.
    package var hasUnusedKinds: Bool { kinds.hasUnused }

    /// Frees the numbers of kinds that nobody shows any more, so that other kinds may get them.
    /// Call it only while no event is under way that names kinds by number.
    package mutating func reclaimKinds() { kinds.reclaimUnused() }

    /// Apps that show `kindsMax` kinds, and how many rows of their registrations have been taken
    /// without their kind since the start.
    package var appsOutOfKinds: [(app: AppID, refused: Int)] { kinds.full }

    // MARK: Tokens

    /// Finds a token that a registration or a suppression has brought.
    package func token(_ route: RouteID, _ bytes: UnsafeRawBufferPointer) -> TokenID? {
        tokens.find(route: route, bytes: bytes)
    }

    package func route(of token: TokenID) -> RouteID { tokens.route(of: token) }

    /// The token's bytes, valid until `reclaimRemoved()`.
    package func tokenBytes(of token: TokenID) -> UnsafeRawBufferPointer {
        tokens.bytes(of: token)
    }

    /// When the latest of the registrations that have held the token was registered.
    package func registeredAt(of token: TokenID) -> WallTime { tokens.registeredAt(of: token) }

    /// The number that planning keeps for the token; 0 for a new token and after
    /// `reclaimRemoved()`.
    package func pending(_ token: TokenID) -> UInt32 { tokens.pending(token) }

    package mutating func setPending(_ token: TokenID, _ value: UInt32) {
        tokens.setPending(token, value)
    }

    /// Whether any registration holds the token: false once it is removed, and for a token that is
    /// known only from a suppression.
    package func isRegistered(_ token: TokenID) -> Bool { tokens.references(of: token) > 0 }

    /// Frees the rows of `AudienceChanges.removedTokens` that no registration has taken up again.
    package mutating func reclaimRemoved() { tokens.reclaimRemoved() }

    /// Calls `body` with what a registration shows now; not at all where it is gone.
    ///
    /// - Parameter registration: from `AudienceChanges`.
    package func forEachEntry(
        of registration: StableHash.Value, _ body: (AudienceChanges.Listed) -> Void
    ) {
        guard let block = registrations.find(RegistrationTable.Identity(hash: registration)) else {
            return
        }
        registrations.forEachRow(of: block) { row in
            guard row.subject != Subscription.noSubject else { return }
            body(AudienceChanges.Listed(subject: row.subject, entry: row.entry))
        }
    }

    // MARK: Suppressions

    /// Applies a suppression, even of a token that no registration has brought yet. Returns false
    /// when an equally new or newer one was known, or when the token does not have 1 to 512 bytes.
    package mutating func apply(
        suppression: Suppression, recordedAt time: WallTime, route: RouteID,
        token: UnsafeRawBufferPointer
    ) -> Bool {
        guard (1...Self.tokenBytesMax).contains(token.count) else { return false }
        let row = tokens.intern(route: route, bytes: token)
        return tokens.apply(suppression, recordedAt: time, to: row)
    }

    /// Removes a token's suppression. Returns false when there was none.
    package mutating func revokeSuppression(route: RouteID, token: UnsafeRawBufferPointer) -> Bool {
        guard let row = tokens.find(route: route, bytes: token) else { return false }
        return tokens.revokeSuppression(of: row)
    }

    /// Whether the token has a suppression that is not older than its latest registration.
    package func isSuppressed(_ token: TokenID) -> Bool { tokens.isSuppressed(token) }

    package func suppressionRegisteredAt(_ token: TokenID) -> WallTime? {
        tokens.suppressionRegisteredAt(token)
    }
}

/// The lists that an index keeps beside those of subjects.
package struct FurtherLists: OptionSet, Sendable, Hashable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Of each kind, all its controls and widgets.
    package static let kindWide = FurtherLists(rawValue: 1)
    /// Of each installation, all its tokens but channels.
    package static let installations = FurtherLists(rawValue: 2)

    /// Whether there are lists of this scope.
    func include(_ scope: ListScope) -> Bool {
        switch scope {
        case .subject: true
        case .kindWide: contains(.kindWide)
        case .installation: contains(.installations)
        }
    }
}

/// The routes of the routing table by (environment, app, class), as an array: a replay looks one up
/// for every target.
struct RouteGrid: Sendable {
    private let routes: [RouteID?]
    private let apps: Int
    private let appOfRoute: [AppID]

    init(_ routing: RoutingTable) {
        var routes: [RouteID?] = []
        for environment in PushEnvironment.allCases {
            for app in routing.apps.indices {
                for tokenClass in TokenClass.allCases {
                    routes.append(
                        routing.route(
                            environment: environment, app: AppID(rawValue: UInt16(app)),
                            tokenClass: tokenClass))
                }
            }
        }
        self.routes = routes
        apps = routing.apps.count
        appOfRoute = routing.routes.map(\.app)
    }

    /// How many routes there are.
    var count: Int { appOfRoute.count }

    func app(of route: RouteID) -> AppID { appOfRoute[Int(route.rawValue)] }

    subscript(environment: PushEnvironment, app: AppID, tokenClass: TokenClass) -> RouteID? {
        guard app.rawValue < apps else { return nil }
        let row = Int(environment.rawValue) * apps + Int(app.rawValue)
        return routes[row * Self.classes + Int(tokenClass.rawValue)]
    }

    private static let classes = TokenClass.allCases.count
}
