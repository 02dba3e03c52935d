// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
package import PushModel

extension Configuration.APNS {
    /// A push type of Apple's that this release does not know.
    package struct AddedPushType: Sendable, Equatable {
        /// The word for its tokens in registrations and events.
        package var tokenClass = ""
        package var topicSuffix = ""
        package var priority: UInt8 = 10
        package var expiration = ExpirationRule.immediate
        package var bodyBytesMax = 4096
        /// The body of the push that a change sends; nil where a push needs a payload.
        package var changeBody: String?
    }
}

extension Configuration.APNS.AddedPushType {
    static var keys: [ConfigurationKey<Self>] {
        [
            .required(
                "class", \.tokenClass,
                .text("1 to 16 of A-Z a-z 0-9", matching: "[A-Za-z0-9]{1,16}"),
                "The word for its tokens in registrations and in `classes`; no other type has it."),
            .required(
                "topicSuffix", \.topicSuffix,
                .text("a dot and 1 to 31 of A-Z a-z 0-9 . -", matching: "\\.[A-Za-z0-9.\\-]{1,31}"),
                "What follows the bundle identifier in `apns-topic`, such as `.push-type.widgets`."),
            .value(
                "priority", \.priority, .choice([("10", 10), ("5", 5), ("1", 1)]),
                "`apns-priority`, unless the event says."),
            .value(
                "expiration", \.expiration,
                .choice([
                    ("immediate", .immediate), ("deadline", .deadline), ("none", .none),
                ]),
                "`apns-expiration`, unless the event says; see `planning.wire`."),
            .value(
                "bodyBytesMax", \.bodyBytesMax, .integer(1...5120),
                "The largest body that APNs accepts."),
            .optional(
                "changeBody", \.changeBody,
                .text("a JSON object", matching: "\\{[^\\x00]*\\}"),
                "What a plain event sends, such as `{\"aps\":{\"content-changed\":true}}`. Without "
                    + "it only events with a payload are sent."),
        ]
    }

    static var row: ConfigurationKey<Configuration.APNS> {
        .map(
            "pushTypes", \.pushTypes,
            names: NameRule(
                placeholder: "<type>", notation: "the value of apns-push-type, 1 to 16 of a-z 0-9",
                pattern: "[a-z0-9]{1,16}", variableSeparator: "-",
                countMax: ConfiguredPushTypes.countMax),
            of: Self(), keys,
            "Push types that Apple has added since this release, each under the value of "
                + "`apns-push-type`. They then have all that other types have: registrations, "
                + "`classes`, `pushType` in events, `lamplighter push`.")
    }

    func definition(named name: String) -> ConfiguredPushTypes.Definition {
        var type = ConfiguredPushTypes.Definition(
            name: name, tokenClass: tokenClass, topicSuffix: topicSuffix)
        type.priority = priority
        type.expiration = expiration
        type.bodyBytesMax = bodyBytesMax
        type.changeBody = changeBody
        return type
    }
}

extension Configuration {
    /// The part of a configuration that must be known before the rest can be read: other keys have
    /// push types and classes as their values.
    private struct PushTypesAlone {
        var apns = APNS()

        static var keys: [ConfigurationKey<Self>] {
            [.section("apns", \.apns, [APNS.AddedPushType.row], "")]
        }
    }

    /// Adds the configured push types to the process's table if they are right. What is wrong with
    /// them is said when the whole configuration is read.
    static func definePushTypes(yaml: String, environment: [String: String]) {
        guard var settings = try? Setting(yaml: yaml) else { return }
        let shape = PushTypesAlone.keys.map { $0.shape(PushTypesAlone()) }
        _ = EnvironmentVariables(root: .section(shape)).apply(environment, to: &settings)
        var reader = SettingReader(knownPaths: [])
        // A whole configuration has classes in it, which would close their table.
        var apns = APNS()
        let section = settings.entries?.first { $0.name == "apns" }?.value
        let written = section?.entries?.first { $0.name == "pushTypes" }?.value
        APNS.AddedPushType.row.read(&apns, written, &reader)
        apns.checkPushTypes(&reader)
        guard reader.problems.isEmpty else { return }
        ConfiguredPushTypes.define(
            apns.pushTypes.sorted { $0.key < $1.key }
                .map { $0.value.definition(named: $0.key) })
    }

}

extension Configuration.APNS {
    func checkPushTypes(_ reader: inout SettingReader) {
        var words = Set(TokenClass.ownNames.map { $0.lowercased() })
        var suffixes = Set(PushType.ownTopicSuffixes)
        for (name, type) in pushTypes.sorted(by: { $0.key < $1.key }) {
            let path = ["apns", "pushTypes", name]
            if PushType.ownNames.contains(name) || name == "mdm" {
                reader.report(
                    path, wrong: "is a push type that this release has",
                    remedy: "leave it out; its headers are under planning.wire")
            }
            if !words.insert(type.tokenClass.lowercased()).inserted {
                reader.report(
                    path + ["class"], wrong: "is a class that another push type has",
                    remedy: "choose another word")
            }
            if !suffixes.insert(type.topicSuffix).inserted {
                reader.report(
                    path + ["topicSuffix"], wrong: "is that of another push type",
                    remedy: "write what Apple's page says for this one")
            }
            guard let body = type.changeBody else { continue }
            let object = try? JSONSerialization.jsonObject(with: Data(body.utf8))
            if !(object is [String: Any]) || body.utf8.count > type.bodyBytesMax {
                reader.report(
                    path + ["changeBody"],
                    wrong: "is not a JSON object of at most \(type.bodyBytesMax) bytes",
                    remedy: "write what Apple's page says, in quotes")
            }
        }
    }
}
