#include "CLinux.h"
#include <string.h>

// CRC32C (Castagnoli), reflected: the checksum of iSCSI, ext4 and Kafka, for which processors have an
// instruction.

static const uint32_t polynomial = 0x82F63B78;

static uint32_t byBit(uint32_t crc, const unsigned char *bytes, size_t count) {
    for (size_t place = 0; place < count; place++) {
        crc ^= bytes[place];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (polynomial & -(crc & 1));
    }
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t byWord(
    uint32_t crc, const unsigned char *bytes, size_t count) {
    uint64_t wide = crc;
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    return byBit((uint32_t)wide, bytes, count);
}
static int hasInstruction(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__aarch64__)
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
__attribute__((target("crc"))) static uint32_t byWord(
    uint32_t crc, const unsigned char *bytes, size_t count) {
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        crc = __builtin_arm_crc32cd(crc, word);
    }
    return byBit(crc, bytes, count);
}
static int hasInstruction(void) { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#else
static uint32_t byWord(uint32_t crc, const unsigned char *bytes, size_t count) {
    return byBit(crc, bytes, count);
}
static int hasInstruction(void) { return 0; }
#endif

uint32_t CLinux_crc32c(uint32_t crc, const void *bytes, size_t count) {
    crc = ~crc;
    crc = hasInstruction() ? byWord(crc, bytes, count) : byBit(crc, bytes, count);
    return ~crc;
}

uint32_t CLinux_crc32cByBit(uint32_t crc, const void *bytes, size_t count) {
    return ~byBit(~crc, bytes, count);
}
