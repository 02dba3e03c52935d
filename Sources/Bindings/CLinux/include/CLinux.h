// SPDX-License-Identifier: Apache-2.0
// Linux calls that Swift's Glibc module does not show, typed one-liners for variadic ones, and what
// Swift has no word for.
#pragma once
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static inline int CLinux_setNonBlocking(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL, 0);
    return flags < 0 ? -1 : fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

/// MAP_FAILED is a macro with a cast that Swift does not import.
static inline void *CLinux_reserve(size_t bytes) {
    void *address = mmap(0, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address == MAP_FAILED ? 0 : address;
}

/// In bytes; 0 where there is none.
static inline uint64_t CLinux_addressSpaceLimit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
    return limit.rlim_cur;
}

/// Has the processor fetch the cache line of this address, which may be any; waits for nothing.
static inline void CLinux_prefetch(const void *address) { __builtin_prefetch(address, 0, 3); }

/// Declared by the system's header only under _GNU_SOURCE, which a module cannot ask for.
extern int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags);

/// Starts a program in a process group of its own, with these standard streams (above 2 here), no
/// other descriptor, and no signal blocked or ignored. The kernel kills it when the thread that called this ends.
/// Returns its process identifier, or -1 and errno; a program that cannot be executed exits with
/// 127.
int CLinux_spawn(const char *path, char *const arguments[], char *const environment[],
                 int input, int output, int error);

/// pipe2 with O_CLOEXEC on both ends.
int CLinux_pipe(int descriptors[2]);

/// Names the calling thread; the kernel keeps 15 bytes.
static inline void CLinux_nameThread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

/// Exit codes of sysexits(3).
enum { CLinux_internalError = 70, CLinux_badConfiguration = 78 };

/// From now on a fatal signal (SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGABRT) prints one line on
/// standard error, which begins with this name and ends with this version, and ends the process with
/// CLinux_internalError.
/// Where the variable SWIFT_BACKTRACE is set, to whatever, the line is followed by what would have
/// come without it: Swift's stack trace, or the kernel's core dump. A sanitizer keeps its own report.
/// Call it before there are threads.
void CLinux_reportCrashes(const char *name, const char *version);

/// Gives the calling thread a stack for signal handlers, so that a full stack can be reported. The
/// main thread has one after CLinux_reportCrashes.
void CLinux_useSignalStack(void);

/// Whether a sanitizer is built in, which looks at the process once it exits.
bool CLinux_hasSanitizer(void);

/// Prints the sentence, as one line that begins with the name, and ends the process at once.
_Noreturn void CLinux_end(int code, const char *sentence);

/// The CRC32C of bytes that follow those with this CRC32C; 0 to begin with.
uint32_t CLinux_crc32c(uint32_t crc, const void *bytes, size_t count);

/// The same without the processor's instruction for it, some fifty times as slow.
uint32_t CLinux_crc32cByBit(uint32_t crc, const void *bytes, size_t count);
