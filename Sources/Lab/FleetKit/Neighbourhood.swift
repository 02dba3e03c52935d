// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
package import RecordFormats

/// A set of homes with a garage door and a lamp each, and the installations whose controls and
/// widgets show them. Everything follows from the number of installations, so that the traffic
/// generator and the view use the same tokens without communicating.
package struct Neighbourhood: Sendable {
    package static let app = "com.example.Home"
    /// The number of installations in each home.
    package static let installationsEach = 3
    /// Every 97th installation was deleted without removing its registration: APNs answers 410 to
    /// its tokens, which begin with `goneTokenPrefix`.
    package static let goneEvery = 97
    package static let goneTokenPrefix = "dead"

    package let installations: Int
    /// Whether there is a street too, which every control shows.
    package let hasStreet: Bool
    package var homes: Int { installations / Self.installationsEach }

    /// - Parameter installations: at least three; rounded down to whole homes.
    package init(installations: Int, hasStreet: Bool = false) {
        self.hasStreet = hasStreet
        precondition(
            installations >= Self.installationsEach,
            "there are enough installations for one home at least")
        self.installations = installations / Self.installationsEach * Self.installationsEach
    }

    // MARK: Subjects: doors first, then lamps, each in the order of their homes; then the street

    /// The number of doors and lamps.
    package var subjectCount: Int { homes * 2 }
    /// The number of the street.
    package var street: Int { subjectCount }

    package func subject(_ number: Int) -> String {
        if hasStreet, number == street { return "street" }
        precondition(
            number >= 0 && number < subjectCount,
            "a subject's number lies within the count of subjects")
        return number < homes ? "door-\(number)" : "lamp-\(number - homes)"
    }

    package func subjectNumber(_ name: String) -> Int? {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let home = Int(parts[1]), (0..<homes).contains(home) else {
            return nil
        }
        switch parts[0] {
        case "door": return home
        case "lamp": return homes + home
        default: return nil
        }
    }

    /// The number of the drawn door, which changes only by flips.
    package static let drawnDoor = 0

    // MARK: Tokens: a control's, a widget's and a device's of each installation, in this order

    package enum Sort: Int, CaseIterable, Sendable { case control, widget, device }

    package var tokenCount: Int { installations * Sort.allCases.count }

    package func tokenNumber(_ sort: Sort, of installation: Int) -> Int {
        precondition(installation >= 0, "an installation's number is at least 0")
        return installation * Sort.allCases.count + sort.rawValue
    }

    /// Whether the installation also gets changes by background push, as half of them do.
    private func hasDevice(_ installation: Int) -> Bool { installation % 2 == 0 }

    /// A token of 32 bytes that look random.
    package func token(_ number: Int) -> [UInt8] {
        var random = SplitMix64(seed: UInt64(number) &+ 1)
        var token: [UInt8] = []
        for _ in 0..<4 {
            let word = random.next()
            token += (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64($0 * 8)) }
        }
        let installation = number / Sort.allCases.count
        if installation % Self.goneEvery == Self.goneEvery - 1 {
            token.replaceSubrange(0..<2, with: [0xDE, 0xAD])
        }
        return token
    }

    /// The numbers of the tokens that must get a push for an event about the subject.
    package func audience(ofSubject number: Int) -> [Int] {
        if hasStreet, number == street {
            return (0..<installations).map { tokenNumber(.control, of: $0) }
        }
        precondition(
            number >= 0 && number < subjectCount,
            "a subject's number lies within the count of subjects")
        let isDoor = number < homes
        let home = isDoor ? number : number - homes
        let first = home * Self.installationsEach
        return (first..<first + Self.installationsEach).flatMap { installation in
            var tokens = [
                tokenNumber(.control, of: installation), tokenNumber(.widget, of: installation),
            ]
            if isDoor && hasDevice(installation) {
                tokens.append(tokenNumber(.device, of: installation))
            }
            return tokens
        }
    }

    // MARK: Registrations

    /// The registrations of the handlers of one installation.
    /// - Parameter tokenSet: the number of the installation's token set; nil for its own.
    package func registrations(
        of installation: Int, tokenSet: Int? = nil, at time: WallTime
    ) -> [RegistrationDraft] {
        precondition(
            (0..<installations).contains(installation),
            "an installation's number lies within the count of installations")
        let owner = tokenSet ?? installation
        let home = installation / Self.installationsEach
        let (door, lamp) = (subject(home), subject(homes + home))
        func target(_ sort: Sort, _ shows: [RegistrationDraft.Show]) -> RegistrationDraft.Target {
            RegistrationDraft.Target(
                tokenClass: sort.tokenClass, token: token(tokenNumber(sort, of: owner)),
                shows: shows)
        }
        var shown: [RegistrationDraft.Show] = [
            .init(kind: "com.example.garageDoor", subjects: [door]),
            .init(kind: "com.example.lamp", subjects: [lamp]),
        ]
        if hasStreet {
            shown.append(.init(kind: "com.example.streetLight", subjects: [subject(street)]))
        }
        var drafts = [
            draft("Controls", installation, time, target(.control, shown)),
            draft(
                "Widgets", installation, time,
                target(.widget, [.init(kind: "com.example.home", subjects: [door, lamp])])),
        ]
        if hasDevice(installation) {
            var device = target(.device, [.init(kind: nil, subjects: [door])])
            device.hearsChanges = true
            drafts.append(draft("Device", installation, time, device))
        }
        return drafts
    }

    private func draft(
        _ handler: String, _ installation: Int, _ time: WallTime,
        _ target: RegistrationDraft.Target
    ) -> RegistrationDraft {
        var draft = RegistrationDraft(
            environment: .production, app: Self.app, installation: "phone-\(installation)",
            handler: handler)
        draft.registeredAt = time
        draft.targets = [target]
        return draft
    }
}

extension Neighbourhood.Sort {
    fileprivate var tokenClass: TokenClass {
        switch self {
        case .control: .control
        case .widget: .widget
        case .device: .device
        }
    }
}
