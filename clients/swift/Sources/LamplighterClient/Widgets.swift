// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

#if canImport(WidgetKit)
    import Foundation
    import LamplighterClientCore
    @preconcurrency import WidgetKit

    /// A `WidgetPushHandler` that registers the widgets' push token, and what the widgets show:
    ///
    ///     struct GarageWidgets: RegisteringWidgetPushHandler {
    ///         static var lamplighter: Lamplighter { .garage }
    ///         static func subjects(of widget: WidgetInfo) -> [String] {
    ///             widget.widgetConfigurationIntent(of: SelectDoor.self)?.door.map { [$0.id] } ?? []
    ///         }
    ///     }
    ///
    /// One token stands for all widgets of the app on the device: a push reloads them all.
    @available(iOS 26.0, macOS 26.0, *)
    public protocol RegisteringWidgetPushHandler: WidgetPushHandler, Sendable {
        static var lamplighter: Lamplighter { get }
        /// The kinds of the widgets that name this handler. Nil, the default: all.
        static var kinds: Set<String>? { get }
        /// The subjects on which a widget depends, usually read from its configuration. Empty for one
        /// that is not configured yet: it shows nothing.
        static func subjects(of widget: WidgetInfo) -> [String]
    }

    @available(iOS 26.0, macOS 26.0, *)
    extension RegisteringWidgetPushHandler {
        public static var kinds: Set<String>? { nil }

        public func pushTokenDidChange(_ pushInfo: WidgetPushInfo, widgets: [WidgetInfo]) {
            Self.lamplighter.register(
                .widgets, handler: Self.name, [Self.target(pushInfo, widgets)])
        }

        static var name: String { Address.handlerName(of: Self.self) }

        /// Without a widget the token stays, and shows nothing: Apple does not say that an empty list
        /// ends its life.
        static func target(_ pushInfo: WidgetPushInfo, _ widgets: [WidgetInfo]) -> Target {
            var subjects: [String: Set<String>] = [:]
            for widget in widgets where kinds?.contains(widget.kind) ?? true {
                subjects[widget.kind, default: []].formUnion(Self.subjects(of: widget))
            }
            // In order, so that the same widgets make the same snapshot.
            let shows = subjects.sorted { $0.key < $1.key }
                .map { Shown(kind: $0.key, subjects: $0.value.sorted()) }
            return Target(token: pushInfo.token, shows: shows.withSubjects())
        }
    }

    @available(iOS 26.0, macOS 26.0, *)
    extension Lamplighter {
        /// Registers the widgets that are placed now. To be called at each launch of the app.
        ///
        /// - Parameter handlers: All handler types of the app's widgets.
        public func synchronizeWidgets(_ handlers: [any RegisteringWidgetPushHandler.Type]) async {
            do {
                for handler in handlers {
                    let mark = try client.mark()
                    let center = WidgetCenter.shared
                    // None before the system has made the token: the handler will report it.
                    guard let pushInfo = await center.currentPushInfo else { break }
                    let widgets = try await center.currentConfigurations()
                    // Kept out only by what the handler has just reported, which is newer.
                    try client.register(
                        .widgets, handler: handler.name,
                        targets: [handler.target(pushInfo, widgets)], since: mark)
                }
            } catch {
                client.report(.outboxFailed(String(describing: error)))
            }
            await send()
        }
    }
#endif
