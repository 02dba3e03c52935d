// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel
internal import RecordFormats
internal import RegistrarRules
internal import Simdjson

@testable import Registrar

/// The body of a batch. What is accepted of an item is a request of its own: its path is the one that
/// the route has, its body is JSON, and nothing is about another app or environment.
enum RegistrarBatchesTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        let limits = RegistrarLimits()
        let key = RegistrarBodiesTarget.key
        let reader = BodyReader()
        let items: [BatchItem]
        do throws(Problem) {
            items = try reader.items(
                in: Array(input), key.environment, app: key.app, limits: limits)
        } catch { return try promiseProblem(error) }
        try promise(items.count <= limits.itemsMax, "\(items.count) items")
        for item in items {
            switch item.result {
            case .failure(let problem): try promiseProblem(problem)
            case .success(let parts): try check(parts, reader)
            }
        }
    }

    private static func check(_ parts: BatchItem.Parts, _ reader: BodyReader) throws {
        try promise(parts.key.app == RegistrarBodiesTarget.key.app, "an item of another app")
        let path = RegistrarRequest.path(of: parts.key, parts.route)
        guard let route = try? RegistrarRoute(path: path) else {
            throw BrokenPromise(description: "an item that has no path")
        }
        try promise(route == parts.route, "a path of something else")
        try promise(route.methods.contains(parts.method.rawValue), "a method that the path has not")
        try promise((parts.belowSequence ?? 0) >= 0, "a sequence below 0")
        guard parts.method == .put else {
            return try promise(parts.body.isEmpty, "a removal with a body")
        }
        do throws(Problem) {
            try reader.read(parts.body) { _ throws(InvalidMember) in () }
        } catch { throw BrokenPromise(description: "an item whose body is not JSON") }
    }
}

/// The body of a request for a credential.
enum RegistrarAttestBodiesTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        let body: AttestationBody
        do throws(Problem) {
            body = try BodyReader().read(Array(input)) { object throws(InvalidMember) in
                try AttestationBody(object)
            }
        } catch { return try promiseProblem(error) }
        let count = body.keyID.utf8.count + body.attestation.utf8.count + body.challenge.utf8.count
        try promise(count <= input.count, "members of \(count) bytes")
    }
}

/// What another replica answers about an installation.
enum RegistrarListsTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        let text = String(decoding: input, as: UTF8.self)
        guard let list = BodyReader().list(in: text) else { return }
        try promise(list.partitions.count + list.handlers.count <= text.utf8.count, "too many")
    }
}

/// The value of `belowSequence`, and the name of a parameter.
enum RegistrarQueriesTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        let text = String(decoding: input, as: UTF8.self)
        do throws(Problem) {
            let sequence = try RequestRules.sequence(text)
            let range = 0...RegistrationArbiter.sequenceMax
            guard range.contains(sequence), text.utf8.count >= "\(sequence)".utf8.count else {
                preconditionFailure("a sequence that is none")
            }
        } catch { try promiseProblem(error) }
        do throws(Problem) {
            try RequestRules.check(
                queryNames: [text], method: "DELETE", .installation(RegistrarBodiesTarget.key))
            guard text == RequestRules.belowSequence else {
                preconditionFailure("a parameter that is not known")
            }
        } catch { try promiseProblem(error) }
    }
}

/// The headers that say what a body is. The input: the values, a line each.
enum RegistrarMediaTypesTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        var values: [String] = []
        while values.count < 4, let line = input.line() {
            values.append(String(decoding: line, as: UTF8.self))
        }
        do throws(Problem) {
            try RequestRules.check(contentType: values, hasBody: true)
            guard values.count == 1, values[0].lowercased().contains("application/json") else {
                preconditionFailure("a body that is not JSON")
            }
        } catch {
            try promise(error.status == 415, "a refusal of another status")
            try promiseProblem(error)
        }
        do throws(Problem) { try RequestRules.check(contentEncoding: values) } catch {
            try promise(error.status == 415, "a refusal of another status")
            try promiseProblem(error)
        }
    }
}

private func promiseProblem(_ problem: Problem) throws {
    try promiseLine(problem.detail)
    try promiseLine(problem.remedy)
    try promise((400..<500).contains(problem.status), "a refusal of another status")
}
