// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Worker
@testable internal import lamplighter

@Suite struct `A sample of events` {
    private static let now = WallTime(rfc3339: "2026-11-21T06:12:00Z")!

    private let plan: WorkerPlan

    init() throws {
        plan = WorkerPlan(
            try configuration(
                """
                kafka: {events: {doors: {decode: json}}}
                intake: {allowKindWide: true}
                """))
    }

    /// What `check --sample` says of these records.
    private func lines(
        _ records: [(String?, String?)], _ registrations: [RegistrationDraft?],
        plan: WorkerPlan? = nil
    ) -> [String] {
        var sample = EventSample(plan ?? self.plan, registry: nil)
        sample.begin(0)
        for (offset, record) in records.enumerated() {
            lend(record.0) { key in
                lend(record.1) { value in
                    sample.record(
                        at: .init(topic: 0, partition: 1, offset: Int64(offset)), key: key,
                        value: value, timestamp: Self.now, now: Self.now, header: { _ in nil })
                }
            }
        }
        let key = Array("production/com.example.Home/I/H".utf8)
        for (number, draft) in registrations.enumerated() {
            let key = draft.map(RegistrationEncoder.key) ?? key
            key.withUnsafeBytes { key in
                lend(draft.map { String(decoding: RegistrationEncoder.value($0), as: UTF8.self) }) {
                    sample.registration(
                        key: key, value: $0,
                        timestamp: Self.now + .seconds(number))
                }
            }
        }
        return sample.lines
    }

    private func lend(_ text: String?, _ body: (UnsafeRawBufferPointer?) -> Void) {
        guard let text else { return body(nil) }
        Array(text.utf8).withUnsafeBytes { body($0) }
    }

    private func shows(
        _ subject: String, kind: String = "lock", installation: String = "I"
    ) -> RegistrationDraft {
        var draft = RegistrationDraft(
            environment: .production, app: "com.example.Home", installation: installation,
            handler: "H")
        draft.targets = [
            .init(
                tokenClass: .control, token: Array(repeating: 7, count: 32),
                shows: [.init(kind: kind, subjects: [subject])])
        ]
        return draft
    }

    @Test func `the share that reaches nobody is told also where it is none`() {
        let lines = lines([("door-1", nil), ("door-1", nil)], [shows("door-1")])
        #expect(lines[0] == "doors: 2 records, 2 events, 0 filtered, 0 dead letters")
        #expect(lines[1] == "doors: 0 of 2 events (0 %) would reach nobody")
    }

    @Test func `events for other classes, kinds and environments reach nobody either`() {
        let values: [String?] = [
            nil, #"{"payload":{"aps":{"alert":"x"}}}"#, #"{"classes":["widget"]}"#,
            #"{"kinds":["lamp"]}"#, #"{"environment":"development"}"#,
        ]
        var records: [(String?, String?)] = values.map { ("door-1", $0) }
        records.append(("dor-1", nil))
        let lines = lines(
            records, [shows("door-1"), shows("other", kind: "lamp", installation: "J")])
        #expect(
            lines[1] == "doors: 5 of 6 events (83 %) would reach nobody: 1 because no registration "
                + "shows the subject or the kind, such as dor-1; 4 because none that does has a "
                + "token of their classes, kinds, environment or push type, such as door-1")
    }

    @Test func `events for whole kinds and apps are judged by the kinds that are shown`() {
        let app = #""app":"com.example.Home""#
        let values = [
            #"{\#(app),"kinds":["lock"]}"#, #"{\#(app),"kinds":["lamp"]}"#,
            #"{\#(app),"kinds":["lock"],"classes":["widget"]}"#, #"{\#(app),"all":true}"#,
        ]
        let records: [(String?, String?)] = values.map { (nil, $0) }
        let lines = lines(records, [shows("door-1")])
        #expect(
            lines[1] == "doors: 2 of 4 events (50 %) would reach nobody: 1 because no registration "
                + "shows the subject or the kind; 1 because none that does has a token of their "
                + "classes, kinds, environment or push type")
    }

    @Test func `events for installations are judged by the registrations of each`() throws {
        let plan = WorkerPlan(
            try configuration(
                """
                kafka: {events: {doors: {decode: json}}}
                intake: {allowInstallations: true}
                """))
        let values = [#"{"installation":"I"}"#, #"{"installation":"door-1"}"#]
        let lines = lines(
            values.map { ("door-1", $0) }, [shows("door-1"), shows("door-1", installation: "J")],
            plan: plan)
        #expect(
            lines[1] == "doors: 1 of 2 events (50 %) would reach nobody: 1 because no registration "
                + "shows the subject or the kind, or is the installation's")
        #expect(lines[2] == "doors/1/0: an installation, look again")
    }

    @Test func `records that are left out for more than a few demands are told by their number`()
        throws
    {
        let fields = ["a", "b", "c", "d", "e", "f"]
        let conditions = fields.map { "{field: /\($0), equals: x}" }.joined(separator: ", ")
        let plan = WorkerPlan(
            try configuration(
                """
                kafka: {events: {orders: {subject: "o-{/id}", when: [\(conditions)]}}}
                """))
        // Each has another field that is not x.
        let records: [(String?, String?)] = fields.map { wrong in
            let members = fields.map { field in
                let value = field == wrong ? "y" : "x"
                return #""\#(field)":"\#(value)""#
            }
            return (nil, "{\(members.joined(separator: ","))}")
        }
        let lines = lines(records + records.suffix(1), [], plan: plan)
        #expect(lines[0] == "orders: 7 records, 0 events, 7 filtered, 0 dead letters")
        #expect(lines.count(where: { $0.contains(" 1 filtered, such as ") }) == 4)
        #expect(lines.last == "orders: and 3 others filtered")
        let few = self.lines(Array(records.prefix(4)), [], plan: plan)
        #expect(!few.contains { $0.contains("others") })
    }

    @Test func `records that one demand leaves out are told together, however they differ`() throws
    {
        let plan = WorkerPlan(
            try configuration(
                """
                kafka: {events: {orders: {subject: "o-{/id}", when: [{field: /a, equals: x}]}}}
                """))
        let records: [(String?, String?)] = (2...7).map { length in
            (nil, #"{"id":1,"a":"\#(String(repeating: "y", count: length))"}"#)
        }
        #expect(
            lines(records, [], plan: plan) == [
                "orders: 6 records, 0 events, 6 filtered, 0 dead letters",
                "orders: 6 filtered, such as orders/1/0: /a must be equals: \"x\", and the record "
                    + "has a text of 2 bytes",
            ])
    }

    @Test func `a registration that is replaced or removed shows nothing any more`() {
        let events: [(String?, String?)] = [("door-1", nil)]
        #expect(
            lines(events, [shows("door-1"), shows("door-2")])[1].contains("1 of 1 events (100 %)"))
        #expect(lines(events, [shows("door-1"), nil])[1].contains("1 of 1 events (100 %)"))
        #expect(
            lines(events, [shows("door-2"), shows("door-1")])[1].contains("0 of 1 events (0 %)"))
    }
}
