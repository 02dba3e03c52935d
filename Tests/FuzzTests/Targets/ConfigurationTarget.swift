// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
internal import Intake
internal import Worker

/// A configuration. The input: lines `NAME=value` of the environment, a line `%%`, the file; or
/// only the file.
///
/// A wrong one is told in lines, a right one can be planned with, and neither shows a secret.
enum ConfigurationTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        var yaml = String(decoding: input, as: UTF8.self)
        var environment: [String: String] = [:]
        if let mark = yaml.firstRange(of: "\n%%\n") {
            for line in yaml[..<mark.lowerBound].split(separator: "\n") {
                let name = line.prefix { $0 != "=" }
                environment["LAMPLIGHTER_" + name] = String(line.dropFirst(name.count + 1))
            }
            yaml = String(yaml[mark.upperBound...])
        }
        let configuration: Configuration
        do throws(InvalidConfiguration) {
            configuration = try Configuration.decode(yaml: yaml, environment: environment)
        } catch {
            try promise(!error.problems.isEmpty, "no problem is told")
            for problem in error.problems { try promiseLine(problem.description) }
            return try promiseSilence(error.description, environment)
        }
        for line in configuration.description.split(separator: "\n") {
            try promiseLine(String(line), bytesMax: 1 << 20)
        }
        try promiseSilence(configuration.description, environment)
        let plan = WorkerPlan(configuration)
        try promise(!plan.bindings.isEmpty, "a worker that reads nothing")
        for binding in plan.bindings {
            try promise(binding.problem(in: plan.routing) == nil, "a binding that stops the worker")
        }
    }

    /// Only values that stand nowhere else: a short one is a word of any message.
    private static func promiseSilence(_ text: String, _ environment: [String: String]) throws {
        for (name, secret) in environment where name.hasSuffix("_KEY") && secret.count >= 16 {
            let isElsewhere = environment.contains {
                $0.key.contains(secret) || $0.key != name && $0.value.contains(secret)
            }
            try promise(isElsewhere || !text.contains(secret), "a text shows a signing key")
        }
    }
}
