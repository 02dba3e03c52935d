// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import AppIntents
import Foundation
import WidgetKit

/// A door as the user picks it when placing a control or a widget.
struct DoorEntity: AppEntity {
    static let typeDisplayRepresentation: TypeDisplayRepresentation = "Door"
    static let defaultQuery = DoorQuery()

    var id: String
    var name: String

    var displayRepresentation: DisplayRepresentation { "\(name)" }
}

struct DoorQuery: EntityQuery {
    func entities(for identifiers: [String]) async throws -> [DoorEntity] {
        try await suggestedEntities().filter { identifiers.contains($0.id) }
    }

    func suggestedEntities() async throws -> [DoorEntity] {
        try await Garage.backend.doors().map { DoorEntity(id: $0.id, name: $0.name) }
    }
}

/// The configuration of a control.
struct SelectDoor: ControlConfigurationIntent {
    static let title: LocalizedStringResource = "Select Door"

    @Parameter(title: "Door") var door: DoorEntity?
}

/// The configuration of a widget.
struct SelectDoorOfWidget: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Select Door"

    @Parameter(title: "Door") var door: DoorEntity?
}

/// What the control's toggle does. The system reloads the control when this returns, and the backend's
/// event reloads the door's controls and widgets on all other devices.
struct SetDoor: SetValueIntent {
    static let title: LocalizedStringResource = "Open or Close Door"

    @Parameter(title: "Door") var door: String
    @Parameter(title: "Open") var value: Bool

    init() {}

    init(door: String) { self.door = door }

    func perform() async throws -> some IntentResult {
        try await Garage.backend.setDoor(door, isOpen: value)
        return .result()
    }
}
