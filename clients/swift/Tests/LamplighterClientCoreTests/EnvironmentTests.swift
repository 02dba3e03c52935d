// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import LamplighterClientCore

@Suite struct `The environment of an app's tokens` {
    /// Made up: a property list between bytes that stand for the CMS signature.
    func profile(_ entitlements: String) -> Data {
        Data([0x30, 0x82, 0x2f, 0xff, 0x00, 0x3c])
            + Data(
                """
                <?xml version="1.0" encoding="UTF-8"?>
                <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
                "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
                <plist version="1.0"><dict>
                <key>Name</key><string>Garage</string>
                <key>Entitlements</key><dict>\(entitlements)</dict>
                </dict></plist>
                """.utf8)
            + Data([0xa0, 0x82, 0x00, 0xff, 0x3c, 0x2f])
    }

    @Test(arguments: ["aps-environment", "com.apple.developer.aps-environment"])
    func `is what the provisioning profile says`(_ key: String) {
        for environment in [PushEnvironment.development, .production] {
            let profile = profile("<key>\(key)</key><string>\(environment.rawValue)</string>")
            #expect(ProvisioningProfile.environment(of: profile) == environment)
        }
    }

    @Test func `is production in the App Store and in TestFlight, which leave no profile`() {
        #expect(ProvisioningProfile.environment(of: nil) == .production)
    }

    @Test func `is production where the profile says nothing or cannot be read`() {
        #expect(ProvisioningProfile.environment(of: profile("")) == .production)
        #expect(ProvisioningProfile.environment(of: Data("<?xml".utf8)) == .production)
        #expect(ProvisioningProfile.environment(of: Data([0x30, 0x82])) == .production)
    }

    @Test func `of an extension is its app's`() {
        let iOS = ProvisioningProfile.candidates(
            for: URL(fileURLWithPath: "/x/Garage.app/PlugIns/Controls.appex"))
        #expect(iOS.first?.path == "/x/Garage.app/embedded.mobileprovision")
        let macOS = ProvisioningProfile.candidates(
            for: URL(fileURLWithPath: "/x/Garage.app/Contents/PlugIns/Controls.appex"))
        #expect(macOS.last?.path == "/x/Garage.app/Contents/embedded.provisionprofile")
        let app = ProvisioningProfile.candidates(for: URL(fileURLWithPath: "/x/Garage.app"))
        #expect(app.first?.path == "/x/Garage.app/embedded.mobileprovision")
        #expect(app.last?.path == "/x/Garage.app/Contents/embedded.provisionprofile")
    }
}
