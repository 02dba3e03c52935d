#define _GNU_SOURCE
#include "CLinux.h"
#include <signal.h>

int CLinux_spawn(const char *path, char *const arguments[], char *const environment[],
                 int input, int output, int error) {
    pid_t parent = getpid();
    pid_t child = fork();
    if (child != 0) {
        // Here too, so that it is done when we return; the child may be past its own call.
        if (child > 0) setpgid(child, child);
        return child;
    }
    // Nothing but async-signal-safe calls from here on: other threads may have held locks.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have ended before that call.
    if (getppid() != parent) _exit(127);
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, 0);
    // What our caller ignores, as a shell does for what it runs in the background, is not for the program.
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    // All three are above 2 already; dup2 clears close-on-exec on its copies.
    if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(error, 2) < 0) _exit(127);
    close_range(3, ~0U, 0);
    execve(path, arguments, environment);
    _exit(127);
}

int CLinux_pipe(int descriptors[2]) { return pipe2(descriptors, O_CLOEXEC); }
