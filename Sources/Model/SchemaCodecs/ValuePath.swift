// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Where in a value something is wrong. It is put together backwards, on the way out of what is
/// nested, so that it costs nothing where nothing is wrong.
struct ValuePath {
    private var steps: [String] = []

    /// Names of a schema may be long, and they are many.
    private static let stepsMax = 64
    private static let stepCharactersMax = 60
    private static let charactersMax = 500

    mutating func enclose(inField name: borrowing [UInt8], _ range: Range<Int>) {
        enclose(String(decoding: name[range], as: UTF8.self))
    }

    mutating func enclose(inField name: String) { enclose(name) }

    mutating func enclose(inItem index: Int) { enclose(index.description) }

    /// A map's keys are content, so that they are not shown.
    mutating func encloseInAny() { enclose("*") }

    private mutating func enclose(_ step: String) {
        if steps.count < Self.stepsMax { steps.append(String(step.prefix(Self.stepCharactersMax))) }
    }

    /// A JSON pointer with `*` for any key of a map, and for any item that is passed over.
    var text: String {
        guard !steps.isEmpty else { return "the top" }
        let text = steps.reversed().map { "/" + $0 }.joined()
        guard text.count > Self.charactersMax else { return text.printable }
        return String(text.prefix(Self.charactersMax)).printable + "…"
    }
}

/// What is wrong with a value. It says nothing of the value's content.
enum ValueFault: Sendable {
    case endsTooEarly, longVarint, outOfRange, negativeLength, noSuchBranch, noSuchSymbol, noBoolean
    case blockSize, notUTF8, longDecimal, tooDeep, tooManySteps, tooLarge, bytesLeft
    case fieldNumber, wireType, strayEndGroup, noTime, noDuration, noMask

    var text: String {
        switch self {
        case .endsTooEarly: "the value ends too early"
        case .longVarint: "a variable-length integer has more than 64 bits"
        case .outOfRange: "an integer is beyond its type's range"
        case .negativeLength: "a length or a count is negative"
        case .noSuchBranch: "the union has no branch of this number"
        case .noSuchSymbol: "the enum has no symbol of this number"
        case .noBoolean: "a boolean is neither 0 nor 1"
        case .blockSize: "a block of items has another size than it says"
        case .notUTF8: "a string is not UTF-8"
        case .longDecimal:
            "a decimal has more than \(SchemaLimits.decimalBytesMax) bytes, or a scale beyond "
                + "±\(SchemaLimits.decimalScales.upperBound)"
        case .tooDeep: "the value nests deeper than \(SchemaLimits.depthMax)"
        case .tooManySteps: "the value has far more parts than its bytes can hold"
        case .tooLarge: "the value is too large as JSON"
        case .bytesLeft: "the value goes on after its end"
        case .fieldNumber: "a field's number is not in 1 to 536870911"
        case .wireType: "a field has a wire type that there is not"
        case .strayEndGroup: "a group ends that has not begun"
        case .noTime: "a timestamp is not in the years 1 to 9999"
        case .noDuration: "a duration is not within 10,000 years, or has two signs"
        case .noMask: "a field mask has an invalid path"
        }
    }
}
