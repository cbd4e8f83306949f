/* Locks of open file descriptions for the index of a WAL.

   SQLite locks parts of that file (`-shm`) with POSIX locks, which the system drops as soon as any library of the process
   closes any descriptor of it, another SQLite among them. In the middle of a checkpoint or a write, that lets others
   overwrite the WAL: commits are lost and the store is corrupt. Locks of open file descriptions conflict with POSIX locks
   and last as long as the description. SQLite has one description of an index in a process, so its own calls can set
   them in the same places: those of the paths that were registered before SQLite opened them. All other calls, and those
   on other files, are passed on as they are.

   A fork inherits descriptions, and with them the locks, also by what is mapped of the file. So the child replaces both
   at once, the memory by a copy of its own: it may not use the store of its parent anyway. */

#define _GNU_SOURCE
#include "slices.h"

#if defined(__linux__)
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#if defined(F_OFD_SETLK)

/* Descriptors above this have POSIX locks, as without this file. */
enum { MOST_DESCRIPTORS = 1 << 16 };

typedef int open_call(const char *, int, int);
typedef int close_call(int);
typedef int fcntl_call(int, int, ...);
typedef void *map_call(void *, size_t, int, int, int, off_t);
typedef int unmap_call(void *, size_t);
typedef struct { void *at; size_t size; } region;

static open_call *real_open;
static close_call *real_close;
static fcntl_call *real_fcntl;
static map_call *real_map;
static unmap_call *real_unmap;
static volatile unsigned char ours[MOST_DESCRIPTORS];
static int nowhere = -1;  /* a descriptor of /dev/null, for forks */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char **paths;
static region *regions;
static size_t path_count, region_count;

static int is_registered(const char *path) {
    int found = 0;
    pthread_mutex_lock(&mutex);
    for (size_t at = 0; at < path_count && !found; at++) {
        found = !strcmp(paths[at], path);
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

static int open_index(const char *path, int flags, int mode) {
    int descriptor = real_open(path, flags, mode);
    size_t length = path ? strlen(path) : 0;
    if (descriptor >= 0 && descriptor < MOST_DESCRIPTORS) {
        ours[descriptor] = length > 4 && !strcmp(path + length - 4, "-shm") && is_registered(path);
    }
    return descriptor;
}

static int close_index(int descriptor) {
    if (descriptor >= 0 && descriptor < MOST_DESCRIPTORS) {
        ours[descriptor] = 0;
    }
    return real_close(descriptor);
}

static int fcntl_index(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (descriptor >= 0 && descriptor < MOST_DESCRIPTORS && ours[descriptor]) {
        int of_description = command == F_SETLK    ? F_OFD_SETLK
                             : command == F_SETLKW ? F_OFD_SETLKW
                             : command == F_GETLK  ? F_OFD_GETLK
                                                   : 0;
        if (of_description) {
            struct flock lock = *(struct flock *)argument;
            lock.l_pid = 0;
            int status = real_fcntl(descriptor, of_description, &lock);
            if (command == F_GETLK && !status) {
                *(struct flock *)argument = lock;
            }
            return status;
        }
    }
    return real_fcntl(descriptor, command, argument);
}

static void *map_index(void *at, size_t size, int protection, int flags, int descriptor, off_t offset) {
    void *mapped = real_map(at, size, protection, flags, descriptor, offset);
    if (mapped != MAP_FAILED && descriptor >= 0 && descriptor < MOST_DESCRIPTORS && ours[descriptor]) {
        pthread_mutex_lock(&mutex);
        region *more = realloc(regions, (region_count + 1) * sizeof(*regions));
        if (more) {
            regions = more;
            regions[region_count++] = (region){mapped, size};
        }
        pthread_mutex_unlock(&mutex);
        if (!more) {
            real_unmap(mapped, size);
            return MAP_FAILED;
        }
    }
    return mapped;
}

static int unmap_index(void *at, size_t size) {
    pthread_mutex_lock(&mutex);
    for (size_t index = 0; index < region_count; index++) {
        if (regions[index].at == at) {
            regions[index] = regions[--region_count];
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
    return real_unmap(at, size);
}

/* What a fork does first: without its descriptors and its mapped memory, the locks end with its parent. */
static void leave(void) {
    for (size_t index = 0; index < region_count; index++) {
        region of = regions[index];
        void *copy = mmap(NULL, of.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (copy != MAP_FAILED) {
            memcpy(copy, of.at, of.size);
            mremap(copy, of.size, of.size, MREMAP_MAYMOVE | MREMAP_FIXED, of.at);
        }
    }
    region_count = 0;
    pthread_mutex_init(&mutex, NULL);  /* another thread of the parent may have had it */
    for (int descriptor = 0; descriptor < MOST_DESCRIPTORS; descriptor++) {
        if (ours[descriptor]) {
            ours[descriptor] = 0;
            dup2(nowhere, descriptor);
        }
    }
}

int rc_replace_calls(const uintptr_t *calls, uintptr_t *replacing) {
    if (!real_open) {
        nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (nowhere < 0 || pthread_atfork(NULL, NULL, leave)) {
            return 0;
        }
        real_close = (close_call *)calls[1];
        real_fcntl = (fcntl_call *)calls[2];
        real_map = (map_call *)calls[3];
        real_unmap = (unmap_call *)calls[4];
        real_open = (open_call *)calls[0];
    }
    replacing[0] = (uintptr_t)open_index;
    replacing[1] = (uintptr_t)close_index;
    replacing[2] = (uintptr_t)fcntl_index;
    replacing[3] = (uintptr_t)map_index;
    replacing[4] = (uintptr_t)unmap_index;
    return 1;
}

int rc_register_index(const char *path) {
    if (is_registered(path)) {
        return 0;
    }
    pthread_mutex_lock(&mutex);
    char **more = realloc(paths, (path_count + 1) * sizeof(*paths)), *copy = strdup(path);
    if (more) {
        paths = more;
    }
    if (more && copy) {
        paths[path_count++] = copy;
    } else {
        free(copy);
    }
    pthread_mutex_unlock(&mutex);
    return more && copy ? 0 : RC_NO_MEMORY;
}

#else

int rc_replace_calls(const uintptr_t *calls, uintptr_t *replacing) {
    (void)calls, (void)replacing;
    return 0;
}

int rc_register_index(const char *path) {
    (void)path;
    return 0;
}

#endif
