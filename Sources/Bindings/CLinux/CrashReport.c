#define _GNU_SOURCE
#include "CLinux.h"
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

// Whoever starts this process reads its last line and its exit code; a signal alone tells nothing.
// All that runs in the handler is async-signal-safe: no allocation, no lock, no stdio.

static char program[64] = "process";
static char build[64];
static int handsOver = 0;
static atomic_flag isReported = ATOMIC_FLAG_INIT;

// Where the linker does not know them nothing is said of the place.
extern const char __executable_start[] __attribute__((weak));
extern const char etext[] __attribute__((weak));

struct line {
    char text[640];
    size_t length;
};

static void append(struct line *line, const char *text) {
    while (*text && line->length < sizeof line->text - 1) line->text[line->length++] = *text++;
}

static void appendNumber(struct line *line, uint64_t number, unsigned base) {
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number && at);
    append(line, digits + at);
}

static void print(struct line *line) {
    line->text[line->length++] = '\n';
    // Whoever should read standard error may not. A pipe that can be written to takes a line whole.
    struct pollfd error = {.fd = 2, .events = POLLOUT};
    if (poll(&error, 1, 1000) != 1) return;
    size_t done = 0;
    while (done < line->length) {
        ssize_t written = write(2, line->text + done, line->length - done);
        if (written <= 0) return;
        done += (size_t)written;
    }
}

static uintptr_t instruction(const void *context) {
    const ucontext_t *at = context;
#if defined(__x86_64__)
    return (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)at->uc_mcontext.pc;
#else
    return 0;
#endif
}

static const char *meaning(int signal) {
    switch (signal) {
    case SIGILL: return "SIGILL, a check in the program failed or memory could not be had";
    case SIGTRAP: return "SIGTRAP, a check in the program failed or memory could not be had";
    case SIGSEGV: return "SIGSEGV, an address that is not mapped, or a full stack";
    case SIGBUS: return "SIGBUS, memory that the system cannot provide";
    case SIGFPE: return "SIGFPE, an impossible computation";
    case SIGABRT: return "SIGABRT, a library gave up; what it said stands above";
    default: return "a signal";
    }
}

static void appendPlace(struct line *line, const siginfo_t *info, const void *context) {
    if (info->si_code == SI_USER) {
        append(line, ", sent by process ");
        appendNumber(line, (uint64_t)info->si_pid, 10);
        return;
    }
    char thread[17] = {0};
    prctl(PR_GET_NAME, thread, 0, 0, 0);
    append(line, ", in thread ");
    append(line, thread);
    uintptr_t at = instruction(context), start = (uintptr_t)__executable_start;
    if (start && at >= start && at < (uintptr_t)etext) {
        append(line, " at program+0x");
        appendNumber(line, at - start, 16);
    } else {
        append(line, " at 0x");
        appendNumber(line, at, 16);
    }
}

static void appendLimit(struct line *line) {
    uint64_t limit = CLinux_addressSpaceLimit();
    if (!limit) return;
    append(line, "; the address space is limited to ");
    appendNumber(line, limit >> 20, 10);
    append(line, " MiB (ulimit -v), which may be the cause");
}

static struct sigaction earlier[NSIG];

static void report(int number, siginfo_t *info, void *context) {
    // A second thread that crashes meanwhile waits for the end; in this one further signals of the
    // kind are blocked, and then the kernel ends the process.
    if (atomic_flag_test_and_set(&isReported)) for (;;) pause();
    // Whoever should read standard error may not: that must not keep the process.
    signal(SIGALRM, SIG_DFL);
    alarm(5);
    struct line line = {.length = 0};
    append(&line, program);
    append(&line, ": internal error: ");
    append(&line, meaning(number));
    appendPlace(&line, info, context);
    appendLimit(&line);
    append(&line, "; start it again, and report this line if it comes back");
    if (*build) {
        append(&line, ": ");
        append(&line, build);
    }
    print(&line);
    if (!handsOver) _exit(CLinux_internalError);
    alarm(0);
    sigaction(number, &earlier[number], 0);
    // A fault comes again by itself, with its own context.
    if (info->si_code <= 0) raise(number);
}

void CLinux_useSignalStack(void) {
    // Beside the thread's stack, which may be what is full.
    static _Thread_local char stack[32 << 10];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, 0);
}

bool CLinux_hasSanitizer(void) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return true;
#endif
#endif
    return false;
}

void CLinux_reportCrashes(const char *name, const char *version) {
    if (CLinux_hasSanitizer()) return;
    strncpy(program, name, sizeof program - 1);
    strncpy(build, version, sizeof build - 1);
    handsOver = getenv("SWIFT_BACKTRACE") != 0;
    CLinux_useSignalStack();
    struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const int signals[] = {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    sigemptyset(&action.sa_mask);
    for (size_t index = 0; index < sizeof signals / sizeof *signals; index++)
        sigaddset(&action.sa_mask, signals[index]);
    for (size_t index = 0; index < sizeof signals / sizeof *signals; index++)
        sigaction(signals[index], &action, &earlier[signals[index]]);
}

void CLinux_end(int code, const char *sentence) {
    struct line line = {.length = 0};
    append(&line, program);
    append(&line, ": ");
    append(&line, sentence);
    print(&line);
    _exit(code);
}
