// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Intake
internal import PushModel

extension Configuration {
    /// Events of the operator's own, which show that pushes arrive.
    package struct Canary: Sendable {
        /// How often each worker writes one; nil writes none.
        package var every: Duration?
        package var app: String?
        package var subject = "lamplighter-canary"
    }

    /// The app of canaries: the one that is named, or the only one there is.
    package var canaryApp: String? {
        let apps = Set(apns.credentials.values.flatMap(\.apps))
        return canary.app ?? (apps.count == 1 ? apps.first : nil)
    }

    /// The first topic whose records are events of ours and are not delayed, filtered or of another app.
    package func canaryBinding(of bindings: [TopicBinding]) -> Int? {
        bindings.firstIndex { binding in
            binding.holdsOwnEvents && binding.delay == .zero && binding.conditions.isEmpty
                && (binding.app == nil || binding.app == canaryApp)
        }
    }

    func checkCanary(_ reader: inout SettingReader) {
        guard canary.every != nil else { return }
        let apps = Set(apns.credentials.values.flatMap(\.apps)).sorted()
        guard reader.isSound(["apns", "credentials"]), reader.isSound(["kafka", "events"]),
            reader.isSound(["canary"])
        else { return }
        if canaryApp == nil {
            return reader.report(
                ["canary", "app"], wrong: "is missing",
                remedy: "name one of \(apps.joined(separator: ", "))")
        }
        if let app = canary.app, !apps.contains(app) {
            let near = Spelling.nearest(to: app, among: apps) ?? ""
            return reader.report(
                ["canary", "app"], wrong: "is \(app), which no credential signs for",
                remedy: "add it to a credential's apps; the nearest there is \(near)")
        }
        let bindings = kafka.events.sorted { $0.key < $1.key }.map(\.value)
        if canaryBinding(of: bindings) == nil {
            reader.report(
                ["canary", "every"], wrong: "has no topic to write to",
                remedy:
                    "add a topic to kafka.events that is decoded as json without a subject, a delay "
                    + "and conditions, such as lamplighter.events")
        }
    }
}

extension Configuration.Canary {
    static var keys: [ConfigurationKey<Self>] {
        [
            .optional(
                "every", \.every, .duration(.seconds(10) ... .seconds(3600)),
                "How often each worker writes an event of its own to a partition that it reads, and "
                    + "waits for APNs's answer to its push; without it none is written. See "
                    + "[operations.md](operations.md#a-canary)."),
            .optional(
                "app", \.app, .bundleID,
                "The app of these events; needed where credentials sign for several."),
            .value(
                "subject", \.subject,
                .text("1 to 256 characters of ASCII", matching: #"[\x20-\x7E]{1,256}"#),
                "Their subject, for which one token of the operator's is to be registered: a "
                    + "development device's, or one that is known to be dead."),
        ]
    }
}
