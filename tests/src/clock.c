/* The wall clock of the servers that are tried, turned: seconds to add are in the file that TEST_CLOCK names. It is
   preloaded, so that the binary is the one that is shipped. Durations and the clocks they are measured by stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static int64_t none = 0;
static _Atomic(int64_t *) turned = 0;

static int64_t seconds(void) {
    int64_t *at = atomic_load(&turned);
    if (!at) {
        const char *name = getenv("TEST_CLOCK");
        int file = name ? open(name, O_RDONLY) : -1;
        void *map = file < 0 ? MAP_FAILED : mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
        at = map == MAP_FAILED ? &none : map;
        atomic_store(&turned, at);
    }
    return *(volatile int64_t *)at;
}

/* Tools such as libfaketime look up functions that the C library may lack, before the program begins and when it first reads the
   clock. The message about such a function is allocated, and freed by the next one, so the program's allocator must work by then, or not
   be asked. */
__attribute__((constructor)) static void look_up_what_is_missing(void) {
    for (int i = 0; i < 3; i++) dlsym(RTLD_NEXT, "a_function_that_does_not_exist");
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *) = 0;
    if (!real) look_up_what_is_missing();
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += seconds();
    return result;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into) *into = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict into, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    into->tv_sec = now.tv_sec;
    into->tv_usec = now.tv_nsec / 1000;
    return 0;
}
