// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import LamplighterClient
import UIKit
import WidgetKit

final class AppDelegate: NSObject, UIApplicationDelegate {
    // device: the token of the app itself, which background pushes wake
    func application(
        _ application: UIApplication,
        didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]?
    ) -> Bool {
        application.registerForRemoteNotifications()
        Task { await logEvents() }
        return true
    }

    func application(
        _ application: UIApplication,
        didRegisterForRemoteNotificationsWithDeviceToken deviceToken: Data
    ) {
        let user = Garage.defaults.string(forKey: "user") ?? "nobody"
        Lamplighter.garage.deviceTokenDidChange(
            deviceToken, shows: [Shown(kind: "messages", subjects: ["user/\(user)/messages"])])
    }
    // end

    // background-push: the app has 30 seconds
    func application(
        _ application: UIApplication, didReceiveRemoteNotification userInfo: [AnyHashable: Any]
    ) async -> UIBackgroundFetchResult {
        async let sent = Lamplighter.garage.send(patience: 10)
        do {
            _ = try await MessageCenter.refresh()
            _ = await sent
            return .newData
        } catch {
            _ = await sent
            return .failed
        }
    }
    // end

    // background-session: answers to what the extension has uploaded
    func application(
        _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
        completionHandler: @escaping () -> Void
    ) {
        // UIKit's handler is not marked as Sendable; it is called on the main thread.
        nonisolated(unsafe) let completion = completionHandler
        if !Lamplighter.garage.handleBackgroundEvents(of: identifier, completion: { completion() })
        {
            completionHandler()
        }
    }
    // end

    /// A refused registration is a mistake in the app: its problem says which.
    private func logEvents() async {
        for await event in Lamplighter.garage.events {
            print("push registration:", event)
        }
    }
}
