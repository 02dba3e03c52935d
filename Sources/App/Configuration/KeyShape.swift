// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// A key without the type of its value: what environment variables, suggestions, the schema and the
/// reference page need to know.
struct KeyShape {
    var name: String
    var summary: String
    var form: Form

    indirect enum Form {
        case value(ValueForm)
        case section([KeyShape])
        case map(NameRule, Form)
    }

    struct ValueForm {
        var notation: String
        var schema: JSONText
        /// The default as it would be written in the file; nil if there is none.
        var defaultText: String?
        /// The default as the schema shows it.
        var defaultJSON: JSONText?
        var isRequired = false
        /// Whether a reload changes it in a running worker.
        var isLive = false
        var isVariableOnly: Bool
    }

    /// All single values under this key with their paths, in which a placeholder such as `<topic>`
    /// stands for a name that the user chooses.
    var values: [(path: [String], summary: String, form: ValueForm)] {
        Self.values(of: form, summary: summary).map { ([name] + $0.path, $0.summary, $0.form) }
    }

    private static func values(
        of form: Form, summary: String
    ) -> [(path: [String], summary: String, form: ValueForm)] {
        switch form {
        case .value(let form): [([], summary, form)]
        case .section(let rows): rows.flatMap(\.values)
        case .map(let names, let element):
            values(of: element, summary: summary).map {
                ([names.placeholder] + $0.path, $0.summary, $0.form)
            }
        }
    }
}

/// What the names in a map may be whose names the user chooses.
struct NameRule {
    /// What stands for a name in the reference page, such as `<topic>`.
    var placeholder: String
    var notation: String
    /// A regular expression for the whole name.
    var pattern: String
    /// The character that `_` in a variable stands for, in a name that is not in the file.
    var variableSeparator: Character
    /// The most names that the map may have.
    var countMax: Int

    func allows(_ name: String) -> Bool {
        // The patterns are constants, and a test uses every one.
        name.wholeMatch(of: try! Regex(pattern)) != nil
    }
}
