// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// What simdjson refuses and JSON allows: integers beyond 64 bits, numbers beyond a double, and
// escapes of lone surrogates. Each is overwritten in place by one that simdjson reads, with as many
// bytes; what is no JSON stays as it is.

#ifndef LENIENTTEXT_H
#define LENIENTTEXT_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "CSimdjson.h"

namespace lenient {

inline bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

/// A number as RFC 8259 has it.
struct Number {
    bool is_valid = false;
    bool is_negative = false;
    bool is_whole = true;
    /// The digits before the point.
    uint8_t *digits = nullptr;
    size_t digit_count = 0;
    uint8_t *end = nullptr;
    /// The power of ten of the first digit that is not 0, and whether there is one.
    long exponent = 0;
    bool is_zero = true;
};

inline uint8_t *skip_digits(uint8_t *at, const uint8_t *end) {
    while (at < end && is_digit(*at)) { at++; }
    return at;
}

inline Number read_number(uint8_t *at, const uint8_t *end) {
    Number number;
    if (*at == '-') {
        number.is_negative = true;
        at++;
    }
    number.digits = at;
    at = skip_digits(at, end);
    number.digit_count = size_t(at - number.digits);
    const bool leading_zero = number.digit_count > 1 && number.digits[0] == '0';
    number.is_zero = number.digit_count > 0 && number.digits[0] == '0';
    number.exponent = long(number.digit_count) - 1;
    number.end = at;
    if (number.digit_count == 0 || leading_zero) { return number; }
    if (at < end && *at == '.') {
        number.is_whole = false;
        uint8_t *fraction = at + 1;
        at = skip_digits(fraction, end);
        number.end = at;
        if (at == fraction) { return number; }
        for (uint8_t *digit = fraction; number.is_zero && digit < at; digit++) {
            number.exponent = long(fraction - digit) - 1;
            number.is_zero = *digit == '0';
        }
    }
    if (at < end && (*at | 0x20) == 'e') {
        number.is_whole = false;
        uint8_t *power = at + 1;
        const bool is_negative = power < end && *power == '-';
        if (power < end && (*power == '-' || *power == '+')) { power++; }
        at = skip_digits(power, end);
        number.end = at;
        if (at == power) { return number; }
        long value = 0;
        for (; power < at; power++) { value = std::min(value * 10 + (*power - '0'), 1000000000L); }
        number.exponent += is_negative ? -value : value;
    }
    number.is_valid = true;
    return number;
}

/// Whether simdjson has no type for it.
inline bool is_too_large(const Number &number) {
    if (!number.is_valid || number.is_zero) { return false; }
    // The largest double is 1.8e308; a number between is read as simdjson reads it, or as that.
    if (!number.is_whole) { return number.exponent >= 308; }
    const char *most = number.is_negative ? "9223372036854775808" : "18446744073709551615";
    const size_t count = std::strlen(most);
    if (number.digit_count != count) { return number.digit_count > count; }
    return std::memcmp(number.digits, most, count) > 0;
}

/// Writes the double next to it, or one as large as there is.
inline void make_smaller(const Number &number) {
    const size_t count = size_t(number.end - number.digits);
    char text[48] = "9e307";
    size_t length = 5;
    if (number.is_whole && number.exponent < 308) {
        char power[8];
        const int power_count = std::snprintf(power, sizeof power, "e%ld", number.exponent);
        const size_t kept = std::min<size_t>(17, count - 1 - size_t(power_count));
        text[0] = char(number.digits[0]);
        text[1] = '.';
        std::memcpy(text + 2, number.digits + 1, kept - 1);
        std::memcpy(text + 1 + kept, power, size_t(power_count));
        length = 1 + kept + size_t(power_count);
    }
    std::memcpy(number.digits, text, length);
    std::memset(number.digits + length, ' ', count - length);
}

/// The value of a \\u escape; negative where there is none.
inline long escape_at(const uint8_t *at, const uint8_t *end) {
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u') { return -1; }
    long value = 0;
    for (int digit = 2; digit < 6; digit++) {
        const uint8_t byte = at[digit];
        const uint8_t letter = uint8_t(byte | 0x20);
        if (is_digit(byte)) {
            value = value * 16 + (byte - '0');
        } else if (letter >= 'a' && letter <= 'f') {
            value = value * 16 + (letter - 'a' + 10);
        } else {
            return -1;
        }
    }
    return value;
}

inline bool is_surrogate(long value) { return value >= 0xD800 && value < 0xE000; }
inline bool is_high(long value) { return value >= 0xD800 && value < 0xDC00; }
inline bool is_low(long value) { return value >= 0xDC00 && value < 0xE000; }

/// What has been overwritten, as flags.
inline uint64_t mend(uint8_t *text, size_t count) {
    uint64_t flags = 0;
    uint8_t *at = text;
    const uint8_t *end = text + count;
    bool in_string = false;
    while (at < end) {
        if (!in_string) {
            if (*at == '"') {
                in_string = true;
            } else if (*at == '-' || is_digit(*at)) {
                const Number number = read_number(at, end);
                if (is_too_large(number)) {
                    make_smaller(number);
                    flags |= CSIMDJSON_MENDED_NUMBERS;
                }
                at = std::max(number.end, at + 1);
                continue;
            }
            at++;
        } else if (*at == '"') {
            in_string = false;
            at++;
        } else if (*at == '\\') {
            const long value = escape_at(at, end);
            if (!is_surrogate(value)) {
                at += 2;
            } else if (is_high(value) && is_low(escape_at(at + 6, end))) {
                at += 12;
            } else {
                std::memcpy(at, "\\ufffd", 6);
                flags |= CSIMDJSON_MENDED_STRINGS;
                at += 6;
            }
        } else {
            at++;
        }
    }
    return flags;
}

}  // namespace lenient

#endif
