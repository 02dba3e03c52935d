// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// developer.apple.com/documentation/appintents. Where Apple's protocols have defaults for what the sources
// do not write, the defaults are here too.
@_exported import FoundationOnApple

public struct LocalizedStringResource: ExpressibleByStringInterpolation, Sendable {
    public init(stringLiteral value: String) {}
}

public protocol IntentResult {}

public struct IntentResultContainer: IntentResult, Sendable {}

extension IntentResult where Self == IntentResultContainer {
    // …/appintents/intentresult/result()
    public static func result() -> Self { fatalError() }
}

public protocol _IntentValue {}
extension String: _IntentValue {}
extension Bool: _IntentValue {}
extension Optional: _IntentValue where Wrapped: _IntentValue {}

public protocol PersistentlyIdentifiable {}

public protocol AppIntent: PersistentlyIdentifiable, Sendable {
    associatedtype PerformResult: IntentResult = IntentResultContainer
    static var title: LocalizedStringResource { get }
    init()
    func perform() async throws -> PerformResult
}

// …/appintents/setvalueintent
public protocol SetValueIntent: AppIntent {
    associatedtype ValueType: _IntentValue
    var value: ValueType { get set }
}

// …/appintents/widgetconfigurationintent, …/controlconfigurationintent: neither is performed
public protocol WidgetConfigurationIntent: AppIntent {}
public protocol ControlConfigurationIntent: AppIntent {}
extension WidgetConfigurationIntent where PerformResult == IntentResultContainer {
    public func perform() async throws -> IntentResultContainer { fatalError() }
}
extension ControlConfigurationIntent where PerformResult == IntentResultContainer {
    public func perform() async throws -> IntentResultContainer { fatalError() }
}

// …/appintents/intentparameter: `@Parameter`
@propertyWrapper public struct IntentParameter<Value: _IntentValue & Sendable>: Sendable {
    public var wrappedValue: Value {
        get { fatalError() }
        nonmutating set {}
    }
    public init(title: LocalizedStringResource) {}
    public init(title: LocalizedStringResource) where Value: ExpressibleByNilLiteral {}
}
public typealias Parameter = IntentParameter

public struct DisplayRepresentation: ExpressibleByStringInterpolation, Sendable {
    public init(stringLiteral value: String) {}
}
public struct TypeDisplayRepresentation: ExpressibleByStringInterpolation, Sendable {
    public init(stringLiteral value: String) {}
}

// …/appintents/entityquery
public protocol EntityQuery: Sendable {
    associatedtype Entity: AppEntity
    init()
    func entities(for identifiers: [Entity.ID]) async throws -> [Entity]
    func suggestedEntities() async throws -> [Entity]
}

// …/appintents/appentity
public protocol AppEntity: _IntentValue, Identifiable, Sendable where ID: Sendable {
    associatedtype DefaultQuery: EntityQuery where DefaultQuery.Entity == Self
    static var typeDisplayRepresentation: TypeDisplayRepresentation { get }
    static var defaultQuery: DefaultQuery { get }
    var displayRepresentation: DisplayRepresentation { get }
}
