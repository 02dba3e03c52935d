// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The classes that can be registered over HTTP, as paths name them.
package enum RegistrationClass: String, CaseIterable, Sendable {
    case controls, widgets, device, liveActivities

    package var tokenClass: TokenClass {
        switch self {
        case .controls: .control
        case .widgets: .widget
        case .device: .device
        case .liveActivities: .liveActivity
        }
    }

    package init?(_ tokenClass: TokenClass) {
        guard let known = Self.allCases.first(where: { $0.tokenClass == tokenClass }) else {
            return nil
        }
        self = known
    }

    /// The name of the handler where a path leaves it out.
    package static let defaultHandler = "default"

    /// The part of the record's key for a handler of this class. The default handlers of two
    /// classes are two records.
    package func keyPart(of handler: String) -> String {
        handler == Self.defaultHandler ? "\(handler).\(rawValue)" : handler
    }

    /// The handler's name for a part of a record's key, as a path writes it.
    package static func handler(keyPart: String) -> String {
        allCases.contains { keyPart == $0.keyPart(of: defaultHandler) } ? defaultHandler : keyPart
    }

    /// Whether paths and bodies may name a handler so. What a default handler is called in a record's key
    /// is no name: two names would be one record, or a widget's that of the controls. Nor is an import's.
    package static func isHandlerName(_ text: String) -> Bool {
        InstallationKey.isName(text) && text != InstallationClaim.handler
            && !ImportedRegistration.isHandler(text)
            && !allCases.contains { text == $0.keyPart(of: defaultHandler) }
    }

    package static let handlerNameRemedy =
        "use another name, or \(defaultHandler) for the default handler; \(SnapshotReader.nameRemedy)"
}
