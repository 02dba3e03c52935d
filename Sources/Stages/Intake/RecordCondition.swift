// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Simdjson

/// A demand on one field of a producer's record. A record that does not meet it is no event.
package struct RecordCondition: Sendable, Equatable {
    /// A single value in JSON.
    package enum Scalar: Sendable, Hashable {
        case text(String)
        case number(ExactNumber)
        case flag(Bool)

        fileprivate func equals(_ value: JSONValue) -> Bool {
            switch self {
            case .text(let text):
                value.string.map { $0.elementsEqual(text.utf8) } ?? false
            case .number(let number): ExactNumber(value) == number
            case .flag(let flag): value.bool == flag
            }
        }
    }

    package enum Test: Sendable, Equatable {
        case isOneOf([Scalar])
        case isNoneOf([Scalar])
        /// Whether the field is there and has a value.
        case exists(Bool)
        /// Whether the field differs in the row before and after the change.
        case changed(Bool)
        case above(ExactNumber)
        case below(ExactNumber)
        case atLeast(ExactNumber)
        case atMost(ExactNumber)
    }

    package var field: FieldPath
    /// All of them must hold.
    package var tests: [Test]

    package init(field: FieldPath, tests: [Test]) {
        self.field = field
        self.tests = tests
    }

    var needsChange: Bool {
        field.needsChange
            || tests.contains { if case .changed = $0 { true } else { false } }
    }

    func holds(in document: RecordDocument) -> Bool {
        tests.allSatisfy { holds($0, document) }
    }

    private func holds(_ test: Test, _ document: RecordDocument) -> Bool {
        let value = document[field]
        func compares(_ holds: (ExactNumber) -> Bool) -> Bool {
            value.flatMap { ExactNumber(comparable: $0) }.map(holds) ?? false
        }
        switch test {
        case .isOneOf(let scalars):
            return value.map { value in scalars.contains { $0.equals(value) } } ?? false
        case .isNoneOf(let scalars):
            return value.map { value in !scalars.contains { $0.equals(value) } } ?? true
        case .exists(let exists): return (value != nil) == exists
        case .changed(let changed): return hasChanged(document) == changed
        case .above(let bound): return compares { $0 > bound }
        case .below(let bound): return compares { $0 < bound }
        case .atLeast(let bound): return compares { $0 >= bound }
        case .atMost(let bound): return compares { $0 <= bound }
        }
    }

    /// A value that the database did not send has not changed.
    private func hasChanged(_ document: RecordDocument) -> Bool {
        let (before, after) = (side(document.before), side(document.after))
        if before?.isUnavailable ?? false || after?.isUnavailable ?? false { return false }
        if let before = before.flatMap({ ExactNumber($0) }),
            let after = after.flatMap({ ExactNumber($0) })
        {
            return before != after
        }
        return Self.text(before) != Self.text(after)
    }

    /// The field in one of the rows; where it is inside of a text of JSON, the whole text: a change of
    /// anything in it then counts.
    private func side(_ row: JSONValue?) -> JSONValue? {
        guard let row else { return nil }
        if let field = row[field.pointer] { return field }
        guard field.pointer.steps.count > 1, let column = row[field.column],
            column.string != nil
        else { return nil }
        return column
    }

    // MARK: What it does not let pass

    /// The first demand that a record does not meet, and the type of what the record has; nil if it
    /// meets all.
    func refusal(in document: RecordDocument) -> LeftOutReason? {
        guard let test = tests.first(where: { !holds($0, document) }) else { return nil }
        return LeftOutReason(
            "\(field.text) must be \(test.words)", found: met(test, document))
    }

    private func met(_ test: Test, _ document: RecordDocument) -> String {
        if case .changed(let wanted) = test {
            let sides = [side(document.before), side(document.after)]
            if sides.contains(where: { $0?.isUnavailable ?? false }) {
                return "a value that the database did not send, since it has not changed"
            }
            if document.lacksBefore {
                return "a row before the change that is not known"
                    + (wanted ? "" : ", so that it was taken as changed")
            }
            return wanted
                ? "the same before and after the change"
                : "another one before the change than after it"
        }
        guard let value = document[field] else {
            return document.isUnsent(field)
                ? "a value that the database did not send" : "none there"
        }
        return value.shape + (test.isFor(value) ? "" : ", for which that never holds")
    }

    // MARK: What it cannot judge

    /// What the field is where the condition can hold for no value like it; nil where it can. Asked of
    /// conditions that do not hold.
    func mismatch(in document: RecordDocument) -> String? {
        guard let value = document[field] else { return nil }
        for test in tests where !holds(test, document) && !test.isFor(value) {
            return value.shape
        }
        return nil
    }

    /// Whether it judges the field itself, not only if that has changed.
    var judgesValue: Bool {
        tests.contains { if case .changed = $0 { false } else { true } }
    }

    /// Whether it compares the rows before and after a change.
    var comparesRows: Bool {
        tests.contains { if case .changed = $0 { true } else { false } }
    }

    /// The value's JSON; empty where there is none.
    private static func text(_ value: JSONValue?) -> [UInt8] {
        guard let value, !value.isNull else { return [] }
        var text: [UInt8] = []
        // A document is no larger, and two that are too large for this are told apart by nothing.
        _ = value.minify(into: &text, bytesMax: 1 << 20)
        return text
    }
}

extension RecordCondition.Test {
    /// Whether it can hold for a value of this type.
    fileprivate func isFor(_ value: JSONValue) -> Bool {
        switch self {
        case .isOneOf(let scalars): scalars.contains { $0.isLike(value) }
        case .above, .below, .atLeast, .atMost: ExactNumber(comparable: value) != nil
        case .isNoneOf, .exists, .changed: true
        }
    }
}

extension RecordCondition.Test {
    /// As a configuration has it.
    fileprivate var words: String {
        switch self {
        case .isOneOf(let scalars):
            scalars.count == 1 ? "equals: \(scalars[0].words)" : "in: \(Self.list(scalars))"
        case .isNoneOf(let scalars): "notIn: \(Self.list(scalars))"
        case .exists(let exists): "exists: \(exists)"
        case .changed(let changed): "changed: \(changed)"
        case .above(let bound): "above: \(bound.words)"
        case .below(let bound): "below: \(bound.words)"
        case .atLeast(let bound): "atLeast: \(bound.words)"
        case .atMost(let bound): "atMost: \(bound.words)"
        }
    }

    private static func list(_ scalars: [RecordCondition.Scalar]) -> String {
        "[\(scalars.map(\.words).joined(separator: ", "))]"
    }
}

extension ExactNumber {
    fileprivate var words: String {
        switch self {
        case .whole(let number): "\(number)"
        case .fraction(let number): "\(number)"
        case .huge: "a number beyond 128 bits"
        }
    }
}

extension RecordCondition.Scalar {
    fileprivate var words: String {
        switch self {
        case .text(let text): "\"\(text)\""
        case .number(let number): number.words
        case .flag(let flag): "\(flag)"
        }
    }

    fileprivate func isLike(_ value: JSONValue) -> Bool {
        switch self {
        case .text: value.kind == .string
        case .number: value.kind == .number
        case .flag: value.kind == .bool
        }
    }
}
