// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The keys of a worker that sends nothing, and their checks.
extension Configuration.Delivery {
    package enum Mode: String, CaseIterable, Sendable {
        case send
        /// Everything is decided as if pushes were sent, and nothing is sent, nor written to a topic.
        case shadow
    }

    static var shadowKeys: [ConfigurationKey<Self>] {
        [
            .value(
                "mode", \.mode, .choice,
                "`shadow`: a worker beside another sender, in a consumer group of its own, that decides "
                    + "everything, sends nothing, and writes to no topic. See docs/moving.md."),
            .optional(
                "shadowLog", \.shadowLog, .file,
                "In shadow mode: a file for one line of JSON for each push that would have been sent, "
                    + "which `lamplighter compare` reads. Only its user can read it (mode 0600)."),
            .value(
                "shadowLogBytesMax", \.shadowLogBytesMax, .bytes(1 << 20...1 << 40),
                "The most bytes of that file and the one before it, `<shadowLog>.1`, together."),
        ]
    }
}

extension Configuration {
    /// What the group of a shadow must have in its name.
    private static let shadowWord = "shadow"

    func checkShadow(_ reader: inout SettingReader) {
        guard delivery.mode == .shadow else {
            if delivery.shadowLog != nil {
                reader.report(
                    ["delivery", "shadowLog"], wrong: "is set, and delivery.mode is send",
                    remedy: "leave it out, or set delivery.mode to shadow")
            }
            return
        }
        guard reader.isSound(["kafka", "group"]), !kafka.group.contains(Self.shadowWord) else {
            return
        }
        // That of the senders cannot be known, but a copy of their configuration must not start: what a
        // shadow reads in their group reaches nobody.
        reader.report(
            ["kafka", "group"],
            wrong: "is \(kafka.group), which may be that of the workers that send, and "
                + "delivery.mode is shadow",
            remedy:
                "give the shadow a group of its own with the word \(Self.shadowWord) in its name, such "
                + "as lamplighter-shadow")
    }
}
