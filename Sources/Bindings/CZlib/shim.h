// SPDX-License-Identifier: Apache-2.0
// zlib for Swift.
#pragma once
#include <zlib.h>

/// inflateInit2 is a macro. 16 more than the largest window asks for gzip's head and tail.
static inline int CZlib_beginGzip(z_stream *stream) { return inflateInit2(stream, 15 + 16); }
