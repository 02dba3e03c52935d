// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// Apple's word for where a token is valid, from the entitlement `aps-environment`. A token of one
/// environment is refused by the other.
public enum PushEnvironment: String, Codable, Sendable {
    case production, development
}

/// What a token belongs to: a part of the registrar's paths.
public enum TokenClass: String, Codable, Sendable, CaseIterable {
    case controls, widgets, device, liveActivities
}

/// What a device's token does when a subject changes and the event brings no payload.
public enum OnChange: String, Codable, Sendable {
    /// The app is woken by a background push.
    case background
}

/// What one token shows: a kind of control or widget, and the subjects on which it depends.
public struct Shown: Codable, Hashable, Sendable {
    /// The kind as WidgetKit reports it; for a device or a Live Activity any name of the app's.
    public var kind: String
    /// Names of what the backend's events say has changed, such as `door-42`; 1 to 256 bytes each.
    public var subjects: [String]

    public init(kind: String, subjects: [String]) {
        self.kind = kind
        self.subjects = subjects
    }
}

/// One token and what it shows.
public struct Target: Codable, Hashable, Sendable {
    /// The token in hexadecimal. A control may have none yet.
    public var token: String?
    public var onChange: OnChange?
    /// Of a Live Activity: true for the token that starts one. Events that start an activity go to such
    /// tokens, all others to those of activities that run.
    public var pushToStart: Bool?
    public var shows: [Shown]

    /// - Parameter token: The bytes as Apple's frameworks give them, of any length.
    public init(
        token: Data?, shows: [Shown], onChange: OnChange? = nil, pushToStart: Bool? = nil
    ) {
        self.token = token?.hexadecimal
        self.shows = shows
        self.onChange = onChange
        self.pushToStart = pushToStart
    }
}

extension Sequence<Shown> {
    /// Those with a subject. A kind without one stands for all of its kind, which only a caller may
    /// register who may register every subject: one control that is not configured yet would have the
    /// whole snapshot of its handler refused.
    package func withSubjects() -> [Shown] { filter { !$0.subjects.isEmpty } }
}

extension Data {
    package var hexadecimal: String {
        map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}
