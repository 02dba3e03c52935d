// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import AppIntents
import SwiftUI
import WidgetKit

// control: the control names its push handler
struct DoorControl: ControlWidget {
    var body: some ControlWidgetConfiguration {
        AppIntentControlConfiguration(
            kind: Garage.doorControlKind, provider: DoorValueProvider()
        ) { door in
            ControlWidgetToggle(
                door.name, isOn: door.isOpen, action: SetDoor(door: door.id)
            ) { isOpen in
                Label(
                    isOpen ? "Open" : "Closed",
                    systemImage: isOpen ? "door.garage.open" : "door.garage.closed")
            }
        }
        .displayName("Garage Door")
        .promptsForUserConfiguration()
        .pushHandler(GarageControls.self)
    }
}
// end

/// The system asks for the value when it draws the control: after the toggle, and after each push.
struct DoorValueProvider: AppIntentControlValueProvider {
    func previewValue(configuration: SelectDoor) -> Door {
        Door(id: "", name: configuration.door?.name ?? "Garage", isOpen: false)
    }

    func currentValue(configuration: SelectDoor) async throws -> Door {
        guard let door = configuration.door else {
            return previewValue(configuration: configuration)
        }
        return try await Garage.backend.door(door.id)
    }
}
