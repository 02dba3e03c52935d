// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// No exception may cross the C ABI: simdjson's throwing conversions are compiled out, its
// allocations are nothrow, and so are ours.
#define SIMDJSON_EXCEPTIONS 0

#include "CSimdjson.h"

#include "LenientText.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <simdjson.h>

using namespace simdjson;

// simdjson's tape has room for a document of its capacity, and not for what is added.
static constexpr size_t TAIL_WORDS = 64;

struct csimdjson_parser {
    dom::parser parser;
    dom::document document;
    std::unique_ptr<uint8_t[]> input;
    // What is parsed in place of an input that simdjson refuses; made when it is first needed.
    std::unique_ptr<uint8_t[]> mended;
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
        mended.reset();
        input.reset(new (std::nothrow) uint8_t[wanted + SIMDJSON_PADDING]);
        if (!input) { return MEMALLOC; }
        if (error_code error = parser.allocate(wanted, depth_max)) { return error; }
        if (error_code error = document.allocate(wanted + TAIL_WORDS)) { return error; }
        capacity = wanted;
        return SUCCESS;
    }

    error_code parse(const uint8_t *text, size_t count) noexcept {
        return parser.parse_into_document(document, text, count, false).error();
    }

    // Numbers that simdjson has no type for and lone surrogates are no reason to refuse a document:
    // most often nobody reads them. A copy has others of the same length in their place, so that
    // what is asked for can be looked up in the input.
    error_code parse_leniently(size_t count, error_code refusal, uint64_t &flags) noexcept {
        if (refusal == UTF8_ERROR || refusal == DEPTH_ERROR || refusal == MEMALLOC) {
            return refusal;
        }
        if (!mended) {
            mended.reset(new (std::nothrow) uint8_t[capacity + SIMDJSON_PADDING]);
            if (!mended) { return MEMALLOC; }
        }
        std::memcpy(mended.get(), input.get(), count + SIMDJSON_PADDING);
        flags = lenient::mend(mended.get(), count);
        return flags == 0 ? refusal : parse(mended.get(), count);
    }

    // Where scalars stand in the input is written after the last word of the tape, whose place its
    // first word has.
    void add_tail(uint64_t flags) noexcept {
        uint64_t *tail = document.tape.get() + (document.tape[0] & 0xFFFFFFFFFFFFFF);
        tail[0] = reinterpret_cast<uint64_t>(input.get());
        tail[1] = reinterpret_cast<uint64_t>(parser.implementation->structural_indexes.get());
        tail[2] = flags;
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
    const uint8_t *text = static_cast<const uint8_t *>(bytes);
    // A byte order mark says nothing; releases of simdjson differ in what they make of it.
    if (count >= 3 && text[0] == 0xEF && text[1] == 0xBB && text[2] == 0xBF) {
        text += 3;
        count -= 3;
    }
    error_code error = count > parser->bytes_max ? CAPACITY : parser->reserve(count);
    if (!error && count == 0) { error = EMPTY; }
    if (!error) {
        std::memcpy(parser->input.get(), text, count);
        std::memset(parser->input.get() + count, 0, SIMDJSON_PADDING);
        uint64_t flags = 0;
        error = parser->parse(parser->input.get(), count);
        if (error) { error = parser->parse_leniently(count, error, flags); }
        if (!error) { parser->add_tail(flags); }
    }
    document->tape = error ? nullptr : parser->document.tape.get();
    document->strings = error ? nullptr : parser->document.string_buf.get();
    document->message = error_message(error);
    return status(error);
}

bool csimdjson_is_utf8(const void *bytes, size_t count) {
    return validate_utf8(static_cast<const char *>(bytes), count);
}

bool csimdjson_contains(const void *bytes, size_t count, const void *word, size_t word_count) {
    size_t at = 0;
#if defined(__SSE2__)
    // Sixteen places at a time by the word's first and last byte: memmem takes three instructions a byte.
    const auto *text = static_cast<const char *>(bytes);
    const auto *wanted = static_cast<const char *>(word);
    if (word_count == 0) return true;
    const __m128i first = _mm_set1_epi8(wanted[0]), last = _mm_set1_epi8(wanted[word_count - 1]);
    for (; at + word_count + 15 <= count; at += 16) {
        const auto *here = reinterpret_cast<const __m128i *>(text + at);
        const auto *end = reinterpret_cast<const __m128i *>(text + at + word_count - 1);
        const __m128i both = _mm_and_si128(
            _mm_cmpeq_epi8(_mm_loadu_si128(here), first), _mm_cmpeq_epi8(_mm_loadu_si128(end), last));
        for (auto mask = static_cast<unsigned>(_mm_movemask_epi8(both)); mask != 0; mask &= mask - 1) {
            if (memcmp(text + at + __builtin_ctz(mask), word, word_count) == 0) return true;
        }
    }
#endif
    return memmem(static_cast<const char *>(bytes) + at, count - at, word, word_count) != nullptr;
}
