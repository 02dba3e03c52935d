// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// The mistakes that each sanitizer must find, so that a run without reports means something: a word
// that two threads write, and memory that is no longer referenced.

import Glibc

let word = UnsafeMutablePointer<Int>.allocate(capacity: 1)
word.initialize(to: 0)
var other = pthread_t()
pthread_create(
    &other, nil,
    { word in
        word!.assumingMemoryBound(to: Int.self).pointee += 1
        return nil
    }, word)
word.pointee += 1
pthread_join(other, nil)

/// Several, since the last may still stand in a register.
func lose() { for _ in 0..<10 { _ = strdup("nobody's") } }
lose()
