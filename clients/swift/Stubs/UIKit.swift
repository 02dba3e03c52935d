// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

@_exported import FoundationOnApple

extension ProcessInfo {
    // developer.apple.com/documentation/foundation/processinfo/performexpiringactivity(withreason:using:):
    // not on macOS, which is why it stands here.
    public func performExpiringActivity(
        withReason reason: String, using block: @escaping @Sendable (Bool) -> Void
    ) { fatalError() }
}

// developer.apple.com/documentation/uikit/uiresponder
@MainActor open class UIResponder: NSObject {
    public nonisolated override init() { super.init() }
}

// developer.apple.com/documentation/uikit/uiapplication
@MainActor open class UIApplication: UIResponder {
    public struct LaunchOptionsKey: Hashable, Sendable {}
    public class var shared: UIApplication { fatalError() }
    public func registerForRemoteNotifications() {}
}

// …/uikit/uibackgroundfetchresult
public enum UIBackgroundFetchResult: UInt, Sendable {
    case newData, noData, failed
}

// …/uikit/uiapplicationdelegate; optional methods in Objective-C, defaults here
@MainActor public protocol UIApplicationDelegate: NSObject {
    func application(
        _ application: UIApplication,
        didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]?
    ) -> Bool
    func application(
        _ application: UIApplication,
        didRegisterForRemoteNotificationsWithDeviceToken deviceToken: Data)
    func application(
        _ application: UIApplication,
        didFailToRegisterForRemoteNotificationsWithError error: any Error)
    func application(
        _ application: UIApplication, didReceiveRemoteNotification userInfo: [AnyHashable: Any]
    ) async -> UIBackgroundFetchResult
    func application(
        _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
        completionHandler: @escaping () -> Void)
}

extension UIApplicationDelegate {
    public func application(
        _ application: UIApplication,
        didFailToRegisterForRemoteNotificationsWithError error: any Error
    ) {}
}
