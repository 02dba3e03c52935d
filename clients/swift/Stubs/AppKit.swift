// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// The sources only ask whether it is there.
@_exported import FoundationOnApple
