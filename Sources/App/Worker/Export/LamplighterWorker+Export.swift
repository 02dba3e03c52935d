// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import Logging
internal import OTLPExporter

extension LamplighterWorker {
    /// Exports metrics and spans until the task is cancelled, where a collector is configured.
    func export() async {
        let process = ProcessInfo.processInfo
        let worker = configuration.workerName(
            host: process.hostName, process: process.processIdentifier)
        guard
            let settings = configuration.collectorSettings(
                worker: worker, version: build.version)
        else { return }
        let export = TelemetryExport(
            collector: Collector(settings), source: status, spans: control.spans,
            counters: exports, logger: logger)
        await export.run()
    }
}
