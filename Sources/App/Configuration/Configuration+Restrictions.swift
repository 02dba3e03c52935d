// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats

extension SettingType where Value == ConfiguredRestriction {
    /// One line, such as `limit app=com.example.Home class=widget rate=500/s`. A subject comes
    /// last, and may have spaces.
    static var restriction: Self {
        let word = "(?:app|class|topic)=\\S+"
        let pattern = "(?:pause|drop|limit)(?: \(word))+(?: rate=[0-9]+/s)?(?: subject=.+)?"
        return .scalar(
            "pause, drop or limit, and what, such as `pause app=com.example.Home` or "
                + "`limit class=widget rate=500/s`",
            schema: .object([
                ("type", "string"), ("pattern", .string("^(?:\(pattern))$")),
            ]),
            write: { $0.notation }
        ) { text throws(Complaint) in
            let expression = try! Regex(pattern)
            guard text.wholeMatch(of: expression) != nil else { return nil }
            return try ConfiguredRestriction(notation: text)
        }
    }
}

extension ConfiguredRestriction {
    fileprivate init(notation text: String) throws(Complaint) {
        var words = text.split(separator: " ", omittingEmptySubsequences: false)
        var values: [Substring: String] = [:]
        if let subject = words.firstIndex(where: { $0.hasPrefix("subject=") }) {
            values["subject"] = String(
                words[subject...].joined(separator: " ").dropFirst("subject=".count))
            words.removeSubrange(subject...)
        }
        for word in words.dropFirst() {
            let parts = word.split(separator: "=", maxSplits: 1)
            guard values[parts[0]] == nil else {
                throw Complaint(wrong: "has \(parts[0]) twice", remedy: "keep one of them")
            }
            values[parts[0]] = String(parts[1])
        }
        let scope = try Self.scope(values)
        let action = try Self.action(String(words[0]), rate: values["rate"])
        guard Restriction.isPossible(action, for: scope) else {
            throw Complaint(
                wrong: "has \(action.word), which there is not for \(scope)",
                remedy: "pause or drop a topic; drop a subject, or pause its app")
        }
        self.init(action, scope)
    }

    private static func scope(
        _ values: [Substring: String]
    ) throws(Complaint) -> Restriction.Scope {
        let tokenClass = values["class"].map { TokenClass(name: $0) }
        switch (values["app"], tokenClass, values["subject"], values["topic"]) {
        case (_, .some(nil), _, _):
            throw Complaint(
                wrong: "names no class of token",
                remedy: "it is one of " + TokenClass.allCases.map(\.name).joined(separator: ", "))
        case (nil, nil, nil, let topic?): return .topic(topic)
        case (let app?, nil, let subject?, nil)
        where RecordLimits.subjectBytes.contains(subject.utf8.count):
            return .subject(Array(subject.utf8), app: app)
        case (let app, let tokenClass, nil, nil):
            assert(
                app != nil || tokenClass != nil,
                "a restriction of pushes names an app or a class of token")
            return .pushes(app: app, tokenClass: tokenClass ?? nil)
        default:
            throw Complaint(
                wrong: "names too much, or too long a subject",
                remedy: "name one of: app, class, app and class, app and subject, topic")
        }
    }

    private static func action(
        _ word: String, rate: String?
    ) throws(Complaint) -> Restriction.Action {
        guard (word == "limit") == (rate != nil) else {
            throw Complaint(
                wrong: "has a rate where there is no limit, or the other way round",
                remedy: "write rate=500/s after limit, and nowhere else")
        }
        guard let rate else { return word == "drop" ? .drop : .pause }
        assert(rate.hasSuffix("/s"), "a rate that the pattern lets through ends in /s")
        guard let number = Int64(rate.dropLast(2)), RecordLimits.pushesPerSecond.contains(number)
        else {
            throw Complaint(
                wrong: "has an impossible rate",
                remedy: "it is from \(RecordLimits.pushesPerSecond.lowerBound) to "
                    + "\(RecordLimits.pushesPerSecond.upperBound)")
        }
        return .limit(perSecond: Int(number))
    }

    fileprivate var notation: String {
        let what =
            switch scope {
            case .pushes(let app, let tokenClass):
                [app.map { "app=\($0)" }, tokenClass.map { "class=\($0.name)" }]
                    .compactMap { $0 }.joined(separator: " ")
            case .subject(let subject, let app):
                "app=\(app) subject=\(String(decoding: subject, as: UTF8.self))"
            case .topic(let topic): "topic=\(topic)"
            case .rollout(let app): "rollout=\(app)"
            }
        if case .limit(let rate) = action { return "limit \(what) rate=\(rate)/s" }
        return "\(action.word) \(what)"
    }
}

extension Configuration {
    /// A mistyped name would restrict nothing, and nobody would notice.
    func checkRestrictions(_ reader: inout SettingReader) {
        let path = ["planning", "restrictions"]
        guard reader.isSound(path) else { return }
        let apps = Set(apns.credentials.values.flatMap(\.apps))
        let knowsApps = reader.isSound(["apns", "credentials"]) && !apps.isEmpty
        for restriction in planning.restrictions {
            switch restriction.scope {
            case .pushes(let app?, _), .subject(_, let app), .rollout(let app):
                guard knowsApps, !apps.contains(app) else { continue }
                reader.report(
                    path, wrong: "names \(app), which no credential signs for",
                    remedy: "take the app from apns.credentials")
            case .pushes: continue
            case .topic(let topic):
                guard reader.isSound(["kafka", "events"]), kafka.events[topic] == nil else {
                    continue
                }
                reader.report(
                    path, wrong: "names \(topic), which is no event topic",
                    remedy: "take the topic from kafka.events")
            }
        }
    }
}
