// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import Intake
package import PushModel
internal import SchemaCodecs
package import SchemaRegistry

extension Configuration.Kafka {
    /// Where the schemas are that records were written with.
    package struct SchemaRegistry: Sendable {
        /// The base URLs of the registry's instances; empty if there is none.
        package var urls: [String] = []
        package var user: String?
        package var passwordFile: String?
        /// What was read from `passwordFile`.
        package internal(set) var password: Secret?
        package var caFile: String?

        /// Nil if no registry is configured.
        package var settings: RegistrySettings? {
            guard !urls.isEmpty else { return nil }
            var settings = RegistrySettings(urls: urls)
            settings.user = user
            settings.password = password
            settings.caFile = caFile
            return settings
        }
    }
}

extension Configuration.Kafka.SchemaRegistry {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "urls", \.urls,
                .list(
                    of: .text(
                        "a URL such as https://registry:8081",
                        matching: #"https?://[A-Za-z0-9._\-\[\]:]+(?:/[A-Za-z0-9._~/\-]*)?"#),
                    countMax: 16),
                "The base URLs of its instances, which are asked in turn."),
            .optional(
                "user", \.user,
                .text(
                    "1 to 256 printable characters without a colon",
                    matching: "[^\\x00-\\x1F\\x7F:]{1,256}"),
                "Whom to authenticate as (Basic); of Confluent Cloud, the API key."),
            .optional(
                "passwordFile", \.passwordFile, .file,
                "The file with the password; of Confluent Cloud, the API secret."),
            .optional(
                "caFile", \.caFile, .file,
                "PEM file of the roots to trust instead of the system's."),
        ]
    }

    private static let passwordBytesMax = 4096

    /// Reads the password, whose last line break does not count.
    mutating func readPassword(_ reader: inout SettingReader) {
        guard let passwordFile else { return }
        let path = ["kafka", "schemaRegistry", "passwordFile"]
        if let complaint = Configuration.complaint(of: passwordFile, isSecret: true) {
            return reader.report(path, wrong: complaint.wrong, remedy: complaint.remedy)
        }
        let data = try? Data(contentsOf: URL(fileURLWithPath: passwordFile))
        let text = data.flatMap {
            String(validating: $0.prefix(Self.passwordBytesMax + 1), as: UTF8.self)
        }
        let remedy = "write the password there, in at most \(Self.passwordBytesMax) bytes"
        guard let text, text.utf8.count <= Self.passwordBytesMax else {
            return reader.report(
                path, wrong: "is \(passwordFile), which does not hold one line of that size",
                remedy: remedy)
        }
        do throws(Complaint) {
            let line = try SecretText.line(text)
            guard !line.isEmpty else {
                throw Complaint(wrong: "is empty", remedy: remedy)
            }
            password = Secret(line)
        } catch {
            reader.report(
                path, wrong: "is \(passwordFile), which does not hold one line: it \(error.wrong)",
                remedy: error.remedy)
        }
    }

    func check(_ reader: inout SettingReader, _ bindings: [String: TopicBinding]) {
        let path = ["kafka", "schemaRegistry"]
        guard reader.isSound(path) else { return }
        if (user == nil) != (passwordFile == nil) {
            reader.report(
                path + [user == nil ? "user" : "passwordFile"],
                wrong:
                    "is missing beside kafka.schemaRegistry.\(user == nil ? "passwordFile" : "user")",
                remedy: "set both, or neither")
        }
        guard urls.isEmpty else { return }
        if user != nil || passwordFile != nil || caFile != nil {
            reader.report(
                path + ["urls"], wrong: "is missing",
                remedy: "name the registry, such as https://registry:8081")
        }
        for (topic, binding) in bindings.sorted(by: { $0.key < $1.key }) {
            let languages = [
                ("keySchema", binding.keySchema?.language), ("valueSchema", binding.valueSchema),
            ]
            // The values of JSON Schema can be read without it.
            for (key, language) in languages where language.map({ $0 != .json }) ?? false {
                reader.report(
                    ["kafka", "events", topic, key], wrong: "needs a schema registry",
                    remedy: "set kafka.schemaRegistry.urls")
            }
        }
    }
}

extension SettingType where Value == SchemaLanguage {
    static var schemaLanguage: Self {
        .choice(SchemaLanguage.words)
    }
}

extension SettingType where Value == KeyFormat {
    static var keyFormat: Self {
        let schemas = SchemaLanguage.words.map { language in
            (word: language.word, value: KeyFormat.schema(language.value))
        }
        let others: [(word: String, value: KeyFormat)] = [
            ("json", .json), ("int64", .int64), ("int32", .int32),
        ]
        return .choice(schemas + others)
    }
}

extension SchemaLanguage {
    fileprivate static let words: [(word: String, value: SchemaLanguage)] = [
        ("avro", .avro), ("protobuf", .protobuf), ("jsonSchema", .json),
    ]
}
