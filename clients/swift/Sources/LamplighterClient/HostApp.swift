// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

#if canImport(WidgetKit)
    import Foundation
    import LamplighterClientCore
    import Security

    /// The app that this process is, or whose extension it is: its bundle identifier and its environment
    /// are those of the tokens.
    enum HostApp {
        static var isExtension: Bool { Bundle.main.bundleURL.pathExtension == "appex" }

        static var bundleIdentifier: String {
            guard isExtension else { return Bundle.main.bundleIdentifier ?? "unknown" }
            // Garage.app/PlugIns/Controls.appex, on macOS Garage.app/Contents/PlugIns/Controls.appex.
            var url = Bundle.main.bundleURL.deletingLastPathComponent().deletingLastPathComponent()
            if url.lastPathComponent == "Contents" { url.deleteLastPathComponent() }
            return Bundle(url: url)?.bundleIdentifier ?? "unknown"
        }

        static var environment: PushEnvironment {
            #if targetEnvironment(simulator)
                return .development
            #else
                #if canImport(AppKit) && !targetEnvironment(macCatalyst)
                    if let entitlement = signedEntitlement { return entitlement }
                #endif
                for url in ProvisioningProfile.candidates(for: Bundle.main.bundleURL) {
                    if let profile = try? Data(contentsOf: url) {
                        return ProvisioningProfile.environment(of: profile)
                    }
                }
                return ProvisioningProfile.environment(of: nil)
            #endif
        }

        #if canImport(AppKit) && !targetEnvironment(macCatalyst)
            /// On macOS a process can read its own signature; iOS has no such function.
            private static var signedEntitlement: PushEnvironment? {
                guard let task = SecTaskCreateFromSelf(nil) else { return nil }
                let name = NSString(string: "com.apple.developer.aps-environment")
                let value = SecTaskCopyValueForEntitlement(task, name as CFString, nil)
                return (value as? String).flatMap(PushEnvironment.init(rawValue:))
            }
        #endif
    }
#endif
