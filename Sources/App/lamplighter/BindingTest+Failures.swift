// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Intake
import Pipeline
import PushModel
import RecordFormats
import Simdjson
import Worker

extension BindingTest {
    /// Reads the record as a worker would.
    /// - Returns: what is otherwise than expected, one sentence each.
    func failures(topic: String, plan: WorkerPlan, now: WallTime) -> [String] {
        guard let binding = plan.eventTopics.firstIndex(of: topic),
            var decoder = try? EventDecoder(
                bindings: plan.bindings.map(\.withoutSchemas), routing: plan.routing,
                settings: plan.pipeline.events)
        else { return ["\(topic) is no topic of events"] }
        let block = headers.mapValues { ContiguousArray($0 + [0]) }
        let lookup: (String) -> UnsafeRawBufferPointer? = { name in
            // The arrays live as long as this function.
            block[name].map { bytes in
                bytes.withUnsafeBytes { UnsafeRawBufferPointer(rebasing: $0.dropLast()) }
            }
        }
        let found = RecordTrial.lend(key ?? [], value) { lent, value in
            let record = EventRecord(
                binding: binding, key: key == nil ? nil : lent, value: value, timestamp: now)
            do throws(UnreadableRecord) {
                let event = try decoder.decode(record, now: now, header: lookup)
                return .success(Self.found(event))
            } catch {
                return .success(["outcome": "\"\(error.code)\"", "message": error.message])
            }
        }
        withExtendedLifetime(block) {}
        guard case .success(let values) = found else { return ["it could not be tried"] }
        let message = values["message"].map { " (\($0))" } ?? ""
        return expected.sorted { $0.key < $1.key }.compactMap { word, expected in
            let found = values[word] ?? "null"
            return found == expected
                ? nil : "\(word) is \(found)\(message), and \(expected) was expected"
        }
    }

    private static func found(_ event: Event?) -> [String: String] {
        guard let event else { return ["outcome": "\"filtered\""] }
        func list(_ words: [String]) -> String { JSONText.array(words.map { .string($0) }).line }
        let subjects =
            event.subject.isEmpty || event.scope == .installation
            ? [] : [event.subject] + event.furtherSubjects
        var found = [
            "outcome": "\"event\"",
            "subjects": list(subjects.map { String(decoding: $0, as: UTF8.self) }),
            "kinds": list(event.kinds),
            "classes": list(TokenClass.allCases.filter(event.classes.contains).map(\.name)),
        ]
        if let installation = event.installation {
            found["installation"] = JSONText.string(installation).line
        }
        if let payload = event.payload {
            found["pushType"] = "\"\(payload.type.name)\""
            found["payload"] = canonical(String(decoding: payload.body, as: UTF8.self))
        }
        if let collapseID = event.collapseID {
            found["collapseID"] = JSONText.string(collapseID).line
        }
        if let priority = event.priority { found["priority"] = "\(priority)" }
        return found
    }
}
