// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel

extension Configuration {
    /// The apps that some credential serves, sorted.
    package var apps: [String] { Set(apns.credentials.values.flatMap(\.apps)).sorted() }

    /// Says that no credential serves an app, and which apps there are.
    package func strangerText(_ app: String) -> String {
        "'\(app.printable)' is no app of this configuration's apns.credentials, which have "
            + apps.listed(most: 20)
    }

    /// The topics of `kafka.events` whose events can be for no app, each with what to do. While one app
    /// is configured, events that name none are for it; a second one makes dead letters of them.
    ///
    /// It is no problem of the configuration: producers may name the app in each event.
    package var appWarnings: [String] {
        let apps = apps
        guard apps.count > 1 else { return [] }
        return kafka.events.sorted { $0.key < $1.key }.filter { $0.value.app == nil }
            .map { topic, binding in
                let key = SettingReader.shown(["kafka", "events", topic, "app"])
                let (what, remedy) =
                    binding.eventsMayNameApp
                    ? (
                        "events that name no app become dead letters (missingApp) and reach nobody",
                        "set it to the app that they are for, or have every producer name one"
                    )
                    : (
                        "its records cannot name one, so each becomes a dead letter (missingApp) "
                            + "and reaches nobody", "set it to the app that they are for"
                    )
                return "\(key) is not set, and \(apps.count) apps are configured "
                    + "(\(apps.listed())): \(what); \(remedy)"
            }
    }
}

extension TopicBinding {
    /// Whether there is a place for an app in the topic's records.
    fileprivate var eventsMayNameApp: Bool { holdsOwnEvents || decode == .cloudevents }
}
