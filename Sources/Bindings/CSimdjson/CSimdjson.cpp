// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// No exception may cross the C ABI: simdjson's throwing conversions are compiled out, its
// allocations are nothrow, and so are ours.
#define SIMDJSON_EXCEPTIONS 0

#include "CSimdjson.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include <simdjson.h>

using namespace simdjson;

struct csimdjson_parser {
    dom::parser parser;
    dom::document document;
    std::unique_ptr<uint8_t[]> input;
    size_t capacity = 0;
    size_t bytes_max;
    size_t depth_max;

    csimdjson_parser(size_t bytes_max, size_t depth_max)
        : parser(std::max<size_t>(bytes_max, 64)), bytes_max(bytes_max), depth_max(depth_max) {}

    // In powers of two, so that a slow rise of sizes does not allocate for each record.
    error_code reserve(size_t count) noexcept {
        if (count <= capacity) { return SUCCESS; }
        size_t wanted = 4096;
        while (wanted < count) { wanted *= 2; }
        wanted = std::max(std::min(wanted, bytes_max), count);
        capacity = 0;
        input.reset(new (std::nothrow) uint8_t[wanted + SIMDJSON_PADDING]);
        if (!input) { return MEMALLOC; }
        if (error_code error = parser.allocate(wanted, depth_max)) { return error; }
        if (error_code error = document.allocate(wanted)) { return error; }
        capacity = wanted;
        return SUCCESS;
    }
};

static csimdjson_status status(error_code error) noexcept {
    switch (error) {
    case SUCCESS: return CSIMDJSON_OK;
    case CAPACITY: return CSIMDJSON_TOO_LARGE;
    case MEMALLOC: return CSIMDJSON_NO_MEMORY;
    case DEPTH_ERROR: return CSIMDJSON_TOO_DEEP;
    case UTF8_ERROR: return CSIMDJSON_INVALID_UTF8;
    default: return CSIMDJSON_INVALID;
    }
}

csimdjson_parser *csimdjson_parser_create(size_t bytes_max, size_t depth_max) {
    return new (std::nothrow) csimdjson_parser(bytes_max, depth_max);
}

void csimdjson_parser_destroy(csimdjson_parser *parser) { delete parser; }

csimdjson_status csimdjson_parse(
    csimdjson_parser *parser, const void *bytes, size_t count, csimdjson_document *document) {
    error_code error = count > parser->bytes_max ? CAPACITY : parser->reserve(count);
    if (!error && count == 0) { error = EMPTY; }
    if (!error) {
        std::memcpy(parser->input.get(), bytes, count);
        std::memset(parser->input.get() + count, 0, SIMDJSON_PADDING);
        error = parser->parser
                    .parse_into_document(parser->document, parser->input.get(), count, false)
                    .error();
    }
    document->tape = error ? nullptr : parser->document.tape.get();
    document->strings = error ? nullptr : parser->document.string_buf.get();
    document->message = error_message(error);
    return status(error);
}

bool csimdjson_is_utf8(const void *bytes, size_t count) {
    return validate_utf8(static_cast<const char *>(bytes), count);
}
