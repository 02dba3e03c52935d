// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import FoundationEssentials
internal import Intake
internal import KafkaLog
internal import PushModel

/// The checks that involve more than one key. A check is left out if a key of it already has a
/// problem, so that one mistake is reported once.
extension Configuration {
    func check(_ reader: inout SettingReader, for purpose: Purpose) {
        if purpose == .registrar {
            checkTopics(&reader)
            checkProperties(&reader)
            checkListeners(&reader)
            return checkRegistrar(&reader)
        }
        checkTopics(&reader)
        checkBindings(&reader)
        kafka.schemaRegistry.check(&reader, kafka.events)
        checkProperties(&reader)
        checkCredentials(&reader)
        checkShadow(&reader)
        apns.checkPushTypes(&reader)
        checkFiles(&reader)
        checkOTLP(&reader)
        checkCanary(&reader)
        checkOrders(&reader)
        checkRestrictions(&reader)
        checkMinimumGaps(&reader)
        checkProxy(&reader)
        checkListeners(&reader)
        if planning.wire[.background].priority == 10 {
            reader.report(
                ["planning", "wire", "background", "priority"],
                wrong: "is 10, which APNs refuses for background pushes",
                remedy: "set it to 5, 1 or none")
        }
    }

    private func checkProxy(_ reader: inout SettingReader) {
        guard let proxy = apns.proxy else { return }
        if apns.transport == .nghttp2 {
            reader.report(
                ["apns", "transport"], wrong: "is nghttp2, which knows no proxy",
                remedy: "set it to auto or curl, or leave out apns.proxy")
        }
        if HTTPProxy(proxy.text) == nil {
            reader.report(
                ["apns", "proxy"], wrong: "is nothing that libcurl understands",
                remedy: "give it a port of 1 to 65535 and no control character, "
                    + "percent-encoded or not")
        }
    }

    // MARK: Kafka

    private func checkTopics(_ reader: inout SettingReader) {
        var own = [
            ("registrations", kafka.topics.registrations),
            ("suppressions", kafka.topics.suppressions),
            ("deferred", kafka.topics.deferred), ("deadLetters", kafka.topics.deadLetters),
            ("restrictions", kafka.topics.restrictions),
        ]
        if let outcomes = kafka.topics.outcomes { own.append(("outcomes", outcomes)) }
        for (index, (key, topic)) in own.enumerated() {
            let path = ["kafka", "topics", key]
            if let other = own[..<index].first(where: { $0.1 == topic }) {
                reader.report(
                    path, wrong: "is \(topic), as is kafka.topics.\(other.0)",
                    remedy: "give each a topic of its own")
            } else if kafka.events[topic] != nil {
                reader.report(
                    path, wrong: "is \(topic), which is an event topic too",
                    remedy: "give each a topic of its own")
            }
        }
        if kafka.events.isEmpty, reader.isSound(["kafka", "events"]) {
            reader.report(
                ["kafka", "events"], wrong: "has no topic",
                remedy: "name one, or leave the key out to read lamplighter.events")
        }
        for topic in kafka.eventTests.keys.sorted() where kafka.events[topic] == nil {
            reader.report(
                ["kafka", "eventTests", topic], wrong: "is no event topic",
                remedy: "take the topic from kafka.events")
        }
        guard reader.isSound(["kafka", "events"]) else { return }
        for record in kafka.skip where kafka.events[record.topic] == nil {
            reader.report(
                ["kafka", "skip"], wrong: "names \(record.topic), which is no event topic",
                remedy: "take the topic from kafka.events")
        }
    }

    private func checkBindings(_ reader: inout SettingReader) {
        let apps = Set(apns.credentials.values.flatMap(\.apps))
        let knowsApps = reader.isSound(["apns", "credentials"]) && !apps.isEmpty
        for (topic, binding) in kafka.events.sorted(by: { $0.key < $1.key }) {
            let path = ["kafka", "events", topic]
            if knowsApps { checkApp(of: binding, at: path, among: apps, &reader) }
            if binding.decode == .key, binding.subject?.needsJSON == true {
                reader.report(
                    path + ["subject"], wrong: "has a JSON pointer, but decode is key",
                    remedy: "set decode to json, or use {key} and {header:name} only")
            } else if let problem = binding.ownProblem {
                reader.report(
                    path, wrong: "has a mistake in \(problem.message)", remedy: "see docs/events.md"
                )
            }
            if binding.installation != nil, !intake.allowInstallations {
                reader.report(
                    path + ["installation"],
                    wrong: "names installations, of which the index keeps no lists",
                    remedy: "set intake.allowInstallations to true")
            }
            let ttl = binding.ttl ?? min(planning.ttl, planning.payloadTTL)
            if binding.delay >= ttl {
                reader.report(
                    path + ["delay"],
                    wrong: "is \(binding.delay.notation), and the push is dead after "
                        + ttl.notation,
                    remedy: "make the delay shorter or the ttl longer")
            }
        }
    }

    private func checkApp(
        of binding: TopicBinding, at path: [String], among apps: Set<String>,
        _ reader: inout SettingReader
    ) {
        if let app = binding.app, !apps.contains(app) {
            let near = Spelling.nearest(to: app, among: apps.sorted()) ?? ""
            reader.report(
                path + ["app"], wrong: "is \(app), which no credential signs for",
                remedy: "add it to a credential's apps; the nearest there is \(near)")
        }
        if binding.app == nil, binding.decode == .key, apps.count > 1 {
            reader.report(
                path + ["app"], wrong: "is missing, and decode: key leaves no other place for it",
                remedy: "name one of the \(apps.count) configured apps")
        }
    }

    private func checkProtocol(_ reader: inout SettingReader) {
        guard reader.isSound(["kafka", "bootstrap"]), let problem = kafka.protocolProblem() else {
            return
        }
        reader.report(["kafka", "bootstrap"], wrong: problem.wrong, remedy: problem.remedy)
    }

    private func checkProperties(_ reader: inout SettingReader) {
        checkProtocol(&reader)
        var isSound = true
        func report(_ property: String, _ complaint: Complaint) {
            isSound = false
            reader.report(
                ["kafka", "properties", property], wrong: complaint.wrong,
                remedy: complaint.remedy)
        }
        for (name, value) in kafka.properties.sorted(by: { $0.key < $1.key }) {
            let complaint =
                Self.complaint(of: name, value.text) ?? unreadable(file: name, value.text)
            if let complaint { report(name, complaint) }
        }
        guard isSound, reader.isSound(["kafka", "properties"]) else { return }
        // Some properties are valid only together.
        do throws(KafkaError) {
            try kafka.clientSettings.validate()
        } catch .missingProperty(let name, let remedy) {
            report(name, Complaint(wrong: "is missing", remedy: remedy))
        } catch .refusedProperty(let name, let reason) {
            report(name, Complaint(wrong: "cannot be set", remedy: reason))
        } catch .refusedTogether(let reason) {
            reader.report(
                ["kafka", "properties"], wrong: "are not usable together", remedy: reason)
        } catch {
            reader.report(
                ["kafka", "properties"], wrong: "are refused by librdkafka", remedy: "\(error)")
        }
    }

    /// What is wrong with one librdkafka property by itself; nil if nothing is. Properties are
    /// checked one at a time, so that every invalid one is reported.
    private static func complaint(of property: String, _ value: String) -> Complaint? {
        if let key = Kafka.ownProperties.first(where: { $0.key == property })?.value {
            return Complaint(wrong: "has a key of its own", remedy: "set kafka.\(key)")
        }
        do throws(KafkaError) {
            try KafkaClientSettings.validate(property: property, value: value)
            return nil
        } catch {
            let foreign = ForeignProperty.remedy(for: property)
            switch error {
            // librdkafka knows the names of some, and has nothing for them.
            case .unknownProperty where foreign != nil, .invalidProperty where foreign != nil:
                return Complaint(
                    wrong: "is a property of other clients, and none of librdkafka",
                    remedy: foreign!)
            case .unknownProperty:
                let near = Spelling.nearest(
                    to: property, among: KafkaClientSettings.knownProperties)
                return Complaint(
                    wrong: "is no property of librdkafka",
                    remedy: "check its spelling"
                        + (near.map { "; the nearest there is \($0)" } ?? ""))
            case .refusedProperty(_, let reason):
                return Complaint(wrong: "cannot be set", remedy: reason)
            case .invalidProperty(_, let message):
                return Complaint(wrong: "is refused", remedy: message)
            default:
                return Complaint(wrong: "is refused by librdkafka", remedy: "\(error)")
            }
        }
    }

    /// What is wrong with a property that names a file for an encrypted connection; nil if nothing
    /// is. librdkafka's error about a missing file does not name the property.
    private func unreadable(file property: String, _ path: String) -> Complaint? {
        let security = kafka.properties["security.protocol"]?.text.lowercased() ?? ""
        guard Self.fileProperties.contains(property), security.hasSuffix("ssl"), !path.isEmpty
        else { return nil }
        let isAuthorities = property == "ssl.ca.location"
        // With this value librdkafka searches the usual folders for the authorities.
        if isAuthorities, path == "probe" { return nil }
        let manager = FileManager.default
        var isFolder = false
        guard manager.fileExists(atPath: path, isDirectory: &isFolder) else {
            return Complaint(
                wrong: "is \(path), which cannot be read: it does not exist",
                remedy: "name a file, best by its whole path")
        }
        if isFolder, !isAuthorities {
            return Complaint(
                wrong: "is \(path), which cannot be read: it is a folder", remedy: "name a file")
        }
        guard manager.isReadableFile(atPath: path) else {
            return Complaint(
                wrong: "is \(path), which cannot be read by this user",
                remedy: "give the worker's user read permission")
        }
        return nil
    }

    private static let fileProperties: Set = [
        "ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
        "ssl.keystore.location", "ssl.crl.location",
    ]

    // MARK: Bounds that belong together

    private func checkOrders(_ reader: inout SettingReader) {
        func order(
            _ low: (path: [String], value: Duration), _ high: (path: [String], value: Duration)
        ) {
            guard low.value > high.value, reader.isSound(low.path), reader.isSound(high.path)
            else { return }
            reader.report(
                low.path,
                wrong: "is \(low.value.notation), above \(SettingReader.shown(high.path)), "
                    + "which is \(high.value.notation)",
                remedy: "lower the one or raise the other")
        }
        order(
            (["apns", "reconnectMin"], apns.limits.reconnectMin),
            (["apns", "reconnectMax"], apns.limits.reconnectMax))
        order(
            (["delivery", "backoffMin"], delivery.backoff.least),
            (["delivery", "backoffMax"], delivery.backoff.most))
        order(
            (["delivery", "cooldownMin"], delivery.cooldown.least),
            (["delivery", "cooldownMax"], delivery.cooldown.most))
    }
}
