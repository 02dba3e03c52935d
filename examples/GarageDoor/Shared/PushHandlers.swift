// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import LamplighterClient
import WidgetKit

// control-handler: which subjects a control depends on
struct GarageControls: RegisteringControlPushHandler {
    static var lamplighter: Lamplighter { .garage }

    static func subjects(of control: ControlInfo) -> [String] {
        control.configurationIntent(of: SelectDoor.self)?.door.map { [$0.id] } ?? []
    }
}
// end

// widget-handler: the same for widgets, since iOS 26
@available(iOS 26.0, *)
struct GarageWidgets: RegisteringWidgetPushHandler {
    static var lamplighter: Lamplighter { .garage }
    /// The messages widget is reloaded by the app.
    static var kinds: Set<String>? { [Garage.doorWidgetKind] }

    static func subjects(of widget: WidgetInfo) -> [String] {
        widget.widgetConfigurationIntent(of: SelectDoorOfWidget.self)?.door.map { [$0.id] } ?? []
    }
}
// end
