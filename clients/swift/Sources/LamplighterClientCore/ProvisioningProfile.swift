// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// The provisioning profile that Xcode embeds in what it signs for development and ad hoc
/// distribution. An app from the App Store or TestFlight has none.
package enum ProvisioningProfile {
    /// The environment of an app's tokens.
    ///
    /// - Parameter profile: The content of `embedded.mobileprovision` or
    ///   `embedded.provisionprofile`; nil if the app has none, which means production.
    package static func environment(of profile: Data?) -> PushEnvironment {
        guard let profile else { return .production }
        return entitlement(in: profile) ?? .production
    }

    /// The profile is a property list inside a CMS signature. The signature is not checked: the system
    /// has done so, and what is read here decides only to which environment a token is assigned.
    package static func entitlement(in profile: Data) -> PushEnvironment? {
        guard let begin = profile.range(of: Data("<?xml".utf8)),
            let end = profile.range(
                of: Data("</plist>".utf8), in: begin.lowerBound..<profile.endIndex),
            let plist = try? PropertyListSerialization.propertyList(
                from: profile[begin.lowerBound..<end.upperBound], format: nil) as? [String: Any],
            let entitlements = plist["Entitlements"] as? [String: Any]
        else { return nil }
        // The first on iOS, the second on macOS.
        let value =
            entitlements["aps-environment"] ?? entitlements["com.apple.developer.aps-environment"]
        return (value as? String).flatMap(PushEnvironment.init(rawValue:))
    }

    /// Where an app's profile is. An extension's bundle lies inside the app's, whose entitlement is the
    /// one that counts: `Garage.app/PlugIns/Controls.appex`, on macOS
    /// `Garage.app/Contents/PlugIns/Controls.appex`.
    package static func candidates(for bundle: URL) -> [URL] {
        var folder = bundle
        if bundle.pathExtension == "appex" {
            folder = bundle.deletingLastPathComponent().deletingLastPathComponent()
        }
        let contents =
            folder.lastPathComponent == "Contents"
            ? folder : folder.appendingPathComponent("Contents")
        return [
            folder.appendingPathComponent("embedded.mobileprovision"),
            contents.appendingPathComponent("embedded.provisionprofile"),
        ]
    }
}
