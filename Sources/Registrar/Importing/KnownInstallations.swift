// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
package import RegistrarRules

/// Of each installation and class the latest that is known: that it has registered itself, or when
/// what is imported was last seen. 10 bytes each, with 78 to 88 % of the places taken: a million take
/// 12 MB. Of a name 56 bits are kept, by which two of a million are mixed up in one of 140,000
/// imports.
package struct KnownInstallations: ~Copyable {
    /// Seconds since 1970; the greatest of all is that of an installation that registered itself.
    package struct Seen: Hashable, Comparable, Sendable {
        package let seconds: UInt32

        /// Of what was imported and is to be written again.
        package static let forgotten = Seen(seconds: 1)
        /// Of a row that does not say when: earlier than any that does.
        package static let unknown = Seen(seconds: 2)
        package static let registered = Seen(seconds: .max)

        private init(seconds: UInt32) { self.seconds = seconds }

        package init(_ time: WallTime?) {
            let seconds = (time?.milliseconds ?? 0) / 1000
            self.seconds = UInt32(clamping: max(2, min(seconds, Int64(UInt32.max - 1))))
        }

        package static func < (one: Seen, other: Seen) -> Bool { one.seconds < other.seconds }
    }

    /// By the first bits of the name, so that it never grows as a whole.
    private var segments: [Segment]
    package private(set) var count = 0
    private let seed: UInt64

    private static let segmentBits: UInt64 = 8

    /// - Parameter seed: random, so that nobody can choose names that collide.
    package init(seed: UInt64) {
        self.seed = seed
        segments = Array(repeating: Segment(places: 64), count: 1 << Self.segmentBits)
    }

    package func name(_ key: InstallationKey, _ tokenClass: TokenClass) -> UInt64 {
        var hash = StableHash(seed: seed)
        for part in [key.environment.name, key.app, key.installation, tokenClass.name] {
            var part = part
            part.withUTF8 { hash.combine(UnsafeRawBufferPointer($0)) }
        }
        return hash.finish().low
    }

    package subscript(name: UInt64) -> Seen? {
        let seconds = segments[Self.segment(of: name)][name]
        return seconds == 0 ? nil : Seen(clamped: seconds)
    }

    /// Notes the later of what is known and this.
    ///
    /// - Returns: what was known before.
    @discardableResult
    package mutating func note(_ name: UInt64, _ seen: Seen) -> Seen? {
        let before = segments[Self.segment(of: name)].note(name, seen.seconds)
        guard before == 0 else { return Seen(clamped: before) }
        count += 1
        return nil
    }

    private static func segment(of name: UInt64) -> Int { Int(name >> (64 - segmentBits)) }

    private struct Segment {
        /// 32 of the 48 bits of the name that follow those of the segment, and the seconds; 0 where the
        /// place is free.
        private var slots: [UInt64]
        /// The other 16 bits.
        private var rests: [UInt16]
        private var count = 0

        init(places: Int) {
            slots = Array(repeating: 0, count: places)
            rests = Array(repeating: 0, count: places)
        }

        /// 0 if nothing is known.
        subscript(name: UInt64) -> UInt32 {
            UInt32(truncatingIfNeeded: slots[place(of: Self.part(of: name))])
        }

        /// Those of a name that a segment keeps.
        private static func part(of name: UInt64) -> UInt64 {
            (name << KnownInstallations.segmentBits) >> 16
        }

        /// - Returns: what was known before; 0 if nothing.
        mutating func note(_ name: UInt64, _ seen: UInt32) -> UInt32 {
            let part = Self.part(of: name)
            let place = place(of: part)
            let before = UInt32(truncatingIfNeeded: slots[place])
            guard before == 0 else {
                set(place, part, max(before, seen))
                return before
            }
            if (count + 1) * 8 > slots.count * 7 { grow() }
            set(self.place(of: part), part, seen)
            count += 1
            assert(count < slots.count, "a place is free, so a search for an unknown name ends")
            return 0
        }

        private mutating func set(_ place: Int, _ part: UInt64, _ seconds: UInt32) {
            assert(seconds != 0, "the seconds that are noted are not 0, which marks a free place")
            slots[place] = (part >> 16) << 32 | UInt64(seconds)
            rests[place] = UInt16(truncatingIfNeeded: part)
        }

        private func part(at place: Int) -> UInt64 {
            (slots[place] >> 32) << 16 | UInt64(rests[place])
        }

        /// Where the name is, or would be.
        private func place(of part: UInt64) -> Int {
            var place = Int((part << 16).multipliedFullWidth(by: UInt64(slots.count)).high)
            while slots[place] != 0, self.part(at: place) != part {
                place = place + 1 == slots.count ? 0 : place + 1
            }
            return place
        }

        private mutating func grow() {
            let old = self
            self = Segment(places: old.slots.count * 9 / 8)
            assert(slots.count > old.slots.count, "a segment grows by at least one place")
            for place in old.slots.indices where old.slots[place] != 0 {
                let part = old.part(at: place)
                set(self.place(of: part), part, UInt32(truncatingIfNeeded: old.slots[place]))
            }
            count = old.count
        }
    }
}

extension KnownInstallations.Seen {
    fileprivate init(clamped seconds: UInt32) {
        self.init(seconds: seconds)
    }
}
