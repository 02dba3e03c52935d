// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// Shows ThreadSanitizer the order that libraries make without its knowledge: what they guard would
// otherwise be reported. scripts/sanitize.py loads this in front of them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

// MARK: Swift's Mutex. Only its fast path is compiled into the program and seen there; where two
// threads meet, the swap or the system call that hands the lock over is inside Swift's library.

// ThreadSanitizer's; absent in the programs of others that inherit the environment.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

typedef __attribute__((swiftcall)) void LockSlow(uint32_t thread,
                                                 __attribute__((swift_context)) void *handle);
typedef __attribute__((swiftcall)) void UnlockSlow(__attribute__((swift_context)) void *handle);

static LockSlow *lockSlow;
static UnlockSlow *unlockSlow;

// At start, since dlsym takes locks of its own.
__attribute__((constructor)) static void findSwiftsOwn(void) {
    lockSlow = (LockSlow *)dlsym(RTLD_NEXT, LOCK_SLOW);
    unlockSlow = (UnlockSlow *)dlsym(RTLD_NEXT, UNLOCK_SLOW);
}

LockSlow seenLock __asm__(LOCK_SLOW);
__attribute__((swiftcall)) void seenLock(uint32_t thread,
                                         __attribute__((swift_context)) void *handle) {
    lockSlow(thread, handle);
    if (__tsan_acquire) __tsan_acquire(handle);
}

UnlockSlow seenUnlock __asm__(UNLOCK_SLOW);
__attribute__((swiftcall)) void seenUnlock(__attribute__((swift_context)) void *handle) {
    if (__tsan_release) __tsan_release(handle);
    unlockSlow(handle);
}

// MARK: C11's threads, librdkafka's. ThreadSanitizer knows those of POSIX only, and a thread that it
// has not seen start crashes it. The two kinds of object are the same in glibc.

static int asC11(int code) {
    switch (code) {
    case 0: return thrd_success;
    case EBUSY: return thrd_busy;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    default: return thrd_error;
    }
}

typedef struct {
    thrd_start_t body;
    void *argument;
} Start;

static void *run(void *context) {
    Start start = *(Start *)context;
    free(context);
    return (void *)(intptr_t)start.body(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t body, void *argument) {
    Start *start = malloc(sizeof *start);
    if (!start) return thrd_nomem;
    *start = (Start){body, argument};
    int code = pthread_create(thread, NULL, run, start);
    if (code != 0) free(start);
    return asC11(code);
}

int thrd_join(thrd_t thread, int *result) {
    void *returned = NULL;
    int code = pthread_join(thread, &returned);
    if (result) *result = (int)(intptr_t)returned;
    return asC11(code);
}

int mtx_init(mtx_t *mutex, int type) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(
        &attributes, type & mtx_recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
    int code = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return asC11(code);
}

int mtx_lock(mtx_t *mutex) { return asC11(pthread_mutex_lock((pthread_mutex_t *)mutex)); }
int mtx_unlock(mtx_t *mutex) { return asC11(pthread_mutex_unlock((pthread_mutex_t *)mutex)); }
void mtx_destroy(mtx_t *mutex) { pthread_mutex_destroy((pthread_mutex_t *)mutex); }

int cnd_init(cnd_t *condition) {
    return asC11(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

int cnd_signal(cnd_t *condition) {
    return asC11(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition) {
    return asC11(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex) {
    return asC11(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
    return asC11(pthread_cond_timedwait(
        (pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until));
}

void cnd_destroy(cnd_t *condition) { pthread_cond_destroy((pthread_cond_t *)condition); }
