// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

#ifndef CSIMDJSON_H
#define CSIMDJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// One parser with its buffers, which grow to the largest document seen and stay.
typedef struct csimdjson_parser csimdjson_parser;

/// simdjson numbers its errors differently from release to release; these stay.
typedef enum csimdjson_status {
    CSIMDJSON_OK = 0,
    CSIMDJSON_INVALID,
    CSIMDJSON_INVALID_UTF8,
    CSIMDJSON_TOO_LARGE,
    CSIMDJSON_TOO_DEEP,
    CSIMDJSON_NO_MEMORY,
} csimdjson_status;

/// What stands on a tape in place of what simdjson has no type for.
enum {
    /// Numbers beyond 64 bits, or beyond a double, are doubles.
    CSIMDJSON_MENDED_NUMBERS = 1,
    /// Lone surrogates are U+FFFD.
    CSIMDJSON_MENDED_STRINGS = 2,
};

/// A parsed document, as simdjson's doc/tape.md lays it out. Valid until the next parse.
///
/// Three words follow the tape's last: the address of the text, the address of the positions in it
/// at which simdjson found a scalar or one of `{}[]:,` (32 bits each), and what was mended.
typedef struct csimdjson_document {
    const uint64_t *tape;
    const uint8_t *strings;
    /// simdjson's words for a failure; static.
    const char *message;
} csimdjson_document;

/// NULL when memory is short.
csimdjson_parser *csimdjson_parser_create(size_t bytes_max, size_t depth_max);
void csimdjson_parser_destroy(csimdjson_parser *parser);

/// `bytes` are copied: simdjson reads up to 64 bytes past the end, and a copy of a small record
/// costs a few nanoseconds.
csimdjson_status csimdjson_parse(
    csimdjson_parser *parser, const void *bytes, size_t count, csimdjson_document *document);

/// Whether the bytes are UTF-8. Reads none beyond them.
bool csimdjson_is_utf8(const void *bytes, size_t count);

/// Whether the bytes of `word` are somewhere in these.
bool csimdjson_contains(const void *bytes, size_t count, const void *word, size_t word_count);

#ifdef __cplusplus
}
#endif

#endif
