// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// An app imports LamplighterClient alone.
@_exported import LamplighterClientCore
