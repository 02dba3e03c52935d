// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Which of Apple's two push environments a token belongs to. The names are those of the app's
/// `aps-environment` entitlement.
package enum PushEnvironment: UInt8, CaseIterable, Sendable, BitwiseCopyable {
    case production
    case development

    package var name: String {
        switch self {
        case .production: "production"
        case .development: "development"
        }
    }

    /// `sandbox`, the word in Apple's host names, is accepted and normalised.
    package init?(name: String) {
        switch name {
        case "production": self = .production
        case "development", "sandbox": self = .development
        default: return nil
        }
    }

    /// The APNs host of this environment unless the configuration names another (port 443).
    package var defaultHost: String {
        switch self {
        case .production: "api.push.apple.com"
        case .development: "api.sandbox.push.apple.com"
        }
    }
}
