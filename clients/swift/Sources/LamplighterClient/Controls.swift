// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

#if canImport(WidgetKit)
    import Foundation
    import LamplighterClientCore
    @preconcurrency import WidgetKit

    /// A `ControlPushHandler` that registers its controls' push tokens. The type says what they show:
    ///
    ///     struct GarageControls: RegisteringControlPushHandler {
    ///         static var lamplighter: Lamplighter { .garage }
    ///         static func subjects(of control: ControlInfo) -> [String] {
    ///             control.configurationIntent(of: SelectDoor.self)?.door.map { [$0.id] } ?? []
    ///         }
    ///     }
    ///
    /// It belongs to the extension, whose controls name it in `pushHandler(_:)`, and to the app, which
    /// names it in ``Lamplighter/synchronizeControls(_:)``.
    @available(iOS 18.0, macOS 26.0, *)
    public protocol RegisteringControlPushHandler: ControlPushHandler, Sendable {
        static var lamplighter: Lamplighter { get }
        /// The kinds of the controls that name this handler. Nil, the default: all that no other handler
        /// names; right for an app with one handler.
        static var kinds: Set<String>? { get }
        /// The subjects on which a control depends, usually read from its configuration. Empty for one
        /// that is not configured yet: its token is registered, and shows nothing.
        static func subjects(of control: ControlInfo) -> [String]
    }

    @available(iOS 18.0, macOS 26.0, *)
    extension RegisteringControlPushHandler {
        public static var kinds: Set<String>? { nil }

        public func pushTokensDidChange(controls: [ControlInfo]) {
            Self.lamplighter.register(
                .controls, handler: Self.name, controls.map { Self.target(of: $0) })
        }

        static var name: String { Address.handlerName(of: Self.self) }

        static func target(of control: ControlInfo) -> Target {
            Target(
                token: control.pushInfo?.token,
                shows: [Shown(kind: control.kind, subjects: subjects(of: control))].withSubjects())
        }
    }

    @available(iOS 18.0, macOS 26.0, *)
    extension Lamplighter {
        /// Registers all controls that are placed now. To be called at each launch of the app: it repairs
        /// what an extension could not write or send.
        ///
        /// - Parameter handlers: All handler types of the app's controls.
        public func synchronizeControls(
            _ handlers: [any RegisteringControlPushHandler.Type]
        ) async {
            do {
                // An extension may report a change while the system answers; then what it said is older.
                for _ in 0..<3 {
                    let mark = try client.mark()
                    let controls = try await ControlCenter.shared.currentControls()
                    if try client.registerControls(Self.grouped(controls, handlers), since: mark) {
                        break
                    }
                }
            } catch {
                client.report(.outboxFailed(String(describing: error)))
            }
            await send()
        }

        /// The controls of each handler. A control that no handler claims is left out.
        private static func grouped(
            _ controls: [ControlInfo], _ handlers: [any RegisteringControlPushHandler.Type]
        ) -> [String: [Target]] {
            var groups: [String: [Target]] = [:]
            for handler in handlers { groups[handler.name] = [] }
            for control in controls {
                let handler =
                    handlers.first { $0.kinds?.contains(control.kind) == true }
                    ?? handlers.first { $0.kinds == nil }
                if let handler { groups[handler.name]?.append(handler.target(of: control)) }
            }
            return groups
        }
    }
#endif
