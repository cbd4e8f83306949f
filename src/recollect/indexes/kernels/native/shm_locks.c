/* Locks of open file descriptions for the index of a WAL.

   SQLite locks parts of that file (`-shm`) with POSIX locks, which the system drops as soon as any library of the process
   closes any descriptor of it, another SQLite among them. In the middle of a checkpoint or a write, that lets others
   overwrite the WAL: commits are lost and the store is corrupt. Locks of open file descriptions conflict with POSIX locks
   and last as long as the description. SQLite has one description of an index in a process, so its own calls can set
   them in the same places: those of the paths that were registered before SQLite opened them. All other calls, and those
   on other files, are passed on as they are; so are all where the file system has no such locks.

   A fork inherits descriptions, and with them the locks, also by what is mapped of the file. POSIX locks are not
   inherited. So the child opens and maps the file again, in the same places: it has no lock. A call and what is noted of
   it are one step for a fork in another thread.

   A fork also inherits what SQLite knows of the locks of its parent, by the device and number of each file, and would
   take them for its own: it would read without a lock, or never write. So SQLite sees another device in each fork.
   It opens a file there as one that it does not know, and sets real locks. */

#define _GNU_SOURCE
#include "slices.h"

#if defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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
typedef int fstat_call(int, struct stat *);
typedef int stat_call(const char *, struct stat *);
typedef struct { void *at; size_t size; int protection, descriptor; off_t offset; } region;
typedef struct { dev_t device; ino_t number; } file;

static open_call *real_open;
static close_call *real_close;
static fcntl_call *real_fcntl;
static map_call *real_map;
static unmap_call *real_unmap;
static fstat_call *real_fstat;
static stat_call *real_stat;
static uint64_t generation;  /* how many forks there were from the first process to this one */
static volatile unsigned char ours[MOST_DESCRIPTORS];  /* whether a descriptor is of a registered path */
static file files[MOST_DESCRIPTORS];  /* of those descriptors */
static int highest = -1;  /* the highest descriptor that ever was */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char **paths;
static region *regions;
static size_t path_count, region_count;

static int is_ours(int descriptor) { return descriptor >= 0 && descriptor < MOST_DESCRIPTORS && ours[descriptor]; }

/* Return whether a path was registered. The caller has the mutex. */
static int is_registered(const char *path) {
    for (size_t at = 0; at < path_count; at++) {
        if (!strcmp(paths[at], path)) {
            return 1;
        }
    }
    return 0;
}

static int open_index(const char *path, int flags, int mode) {
    size_t length = path ? strlen(path) : 0;
    if (length < 4 || strcmp(path + length - 4, "-shm")) {
        int other = real_open(path, flags, mode);
        if (is_ours(other)) {
            ours[other] = 0;  /* somebody has closed ours without SQLite, as daemons close all descriptors */
        }
        return other;
    }
    struct stat facts;
    pthread_mutex_lock(&mutex);
    int descriptor = real_open(path, flags, mode), error = errno;
    if (descriptor >= 0 && descriptor < MOST_DESCRIPTORS) {
        ours[descriptor] = is_registered(path) && !fstat(descriptor, &facts);
        if (ours[descriptor]) {
            files[descriptor] = (file){facts.st_dev, facts.st_ino};
            highest = descriptor > highest ? descriptor : highest;
        }
    }
    pthread_mutex_unlock(&mutex);
    errno = error;
    return descriptor;
}

static int close_index(int descriptor) {
    if (!is_ours(descriptor)) {
        return real_close(descriptor);
    }
    pthread_mutex_lock(&mutex);
    ours[descriptor] = 0;
    int status = real_close(descriptor), error = errno;
    pthread_mutex_unlock(&mutex);
    errno = error;
    return status;
}

static int fcntl_index(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    int of_description = !is_ours(descriptor)   ? 0
                         : command == F_SETLK   ? F_OFD_SETLK
                         : command == F_SETLKW  ? F_OFD_SETLKW
                         : command == F_GETLK   ? F_OFD_GETLK
                                                : 0;
    if (of_description) {
        struct flock lock = *(struct flock *)argument;
        lock.l_pid = 0;
        int status = real_fcntl(descriptor, of_description, &lock);
        if (!status || errno != EINVAL) {
            if (command == F_GETLK && !status) {
                *(struct flock *)argument = lock;
            }
            return status;
        }
        ours[descriptor] = 0;  /* no such locks here, as SQLite's first look at a lock shows: it has none yet */
    }
    return real_fcntl(descriptor, command, argument);
}

static void *map_index(void *at, size_t size, int protection, int flags, int descriptor, off_t offset) {
    if (!is_ours(descriptor)) {
        return real_map(at, size, protection, flags, descriptor, offset);
    }
    pthread_mutex_lock(&mutex);
    region *more = realloc(regions, (region_count + 1) * sizeof(*regions));
    void *mapped = MAP_FAILED;
    if (more) {
        regions = more;
        mapped = real_map(at, size, protection, flags, descriptor, offset);
        if (mapped != MAP_FAILED) {
            regions[region_count++] = (region){mapped, size, protection, descriptor, offset};
        }
    } else {
        errno = ENOMEM;
    }
    int error = errno;
    pthread_mutex_unlock(&mutex);
    errno = error;
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
    int status = real_unmap(at, size), error = errno;
    pthread_mutex_unlock(&mutex);
    errno = error;
    return status;
}

/* Give a file another device in each fork. */
static int of_this_process(int status, struct stat *facts) {
    if (!status) {
        facts->st_dev ^= (dev_t)(generation << 40);
    }
    return status;
}

static int fstat_index(int descriptor, struct stat *facts) {
    return of_this_process(real_fstat(descriptor, facts), facts);
}

static int stat_index(const char *path, struct stat *facts) { return of_this_process(real_stat(path, facts), facts); }

/* Forget what is mapped of a descriptor that is another file's now: it stays as it is. */
static void forget_regions(int descriptor) {
    for (size_t index = 0; index < region_count;) {
        if (regions[index].descriptor == descriptor) {
            regions[index] = regions[--region_count];
        } else {
            index++;
        }
    }
}

/* Around a fork: no other thread is in the middle of a call. */
static void before_fork(void) { pthread_mutex_lock(&mutex); }
static void after_fork(void) { pthread_mutex_unlock(&mutex); }

/* Return whether a descriptor is still that of the file that it was opened for. */
static int is_unchanged(int descriptor) {
    struct stat facts;
    return !fstat(descriptor, &facts) && facts.st_dev == files[descriptor].device &&
           facts.st_ino == files[descriptor].number;
}

/* What a fork does first: it opens and maps the indexes again, so that it has none of the locks. Where that fails, it
   keeps those of its parent: a lock that stays too long is better than memory that is not shared. What SQLite opened in
   the parent is of no further use here. */
static void in_fork(void) {
    for (int descriptor = 0; descriptor <= highest; descriptor++) {
        if (ours[descriptor] && is_unchanged(descriptor)) {
            char name[40];
            snprintf(name, sizeof(name), "/proc/self/fd/%d", descriptor);
            int access = fcntl(descriptor, F_GETFL) & O_ACCMODE, fresh = open(name, access | O_CLOEXEC);
            if (fresh >= 0) {
                dup3(fresh, descriptor, O_CLOEXEC);
                close(fresh);
            }
        } else if (ours[descriptor]) {
            forget_regions(descriptor);
        }
        ours[descriptor] = 0;
    }
    for (size_t index = 0; index < region_count; index++) {
        region of = regions[index];
        mmap(of.at, of.size, of.protection, MAP_SHARED | MAP_FIXED, of.descriptor, of.offset);
    }
    region_count = 0;
    generation++;
    pthread_mutex_unlock(&mutex);
}

int rc_replace_calls(const uintptr_t *calls, uintptr_t *replacing) {
    int failed = 0;
    pthread_mutex_lock(&mutex);
    if (!real_open) {
        failed = pthread_atfork(before_fork, after_fork, in_fork);
        if (!failed) {
            real_close = (close_call *)calls[1];
            real_fcntl = (fcntl_call *)calls[2];
            real_map = (map_call *)calls[3];
            real_unmap = (unmap_call *)calls[4];
            real_fstat = (fstat_call *)calls[5];
            real_stat = (stat_call *)calls[6];
            real_open = (open_call *)calls[0];
        }
    }
    pthread_mutex_unlock(&mutex);
    replacing[0] = (uintptr_t)open_index;
    replacing[1] = (uintptr_t)close_index;
    replacing[2] = (uintptr_t)fcntl_index;
    replacing[3] = (uintptr_t)map_index;
    replacing[4] = (uintptr_t)unmap_index;
    replacing[5] = (uintptr_t)fstat_index;
    replacing[6] = (uintptr_t)stat_index;
    return !failed;
}

int rc_register_index(const char *path) {
    int status = 0;
    pthread_mutex_lock(&mutex);
    if (!is_registered(path)) {
        char **more = realloc(paths, (path_count + 1) * sizeof(*paths)), *copy = strdup(path);
        if (more) {
            paths = more;
        }
        if (more && copy) {
            paths[path_count++] = copy;
        } else {
            free(copy);
            status = RC_NO_MEMORY;
        }
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

int rc_has_lasting_locks(const char *path) {
    struct stat file, other;
    int found = 0;
    pthread_mutex_lock(&mutex);
    if (!stat(path, &file)) {
        for (int descriptor = 0; descriptor <= highest && !found; descriptor++) {
            found = ours[descriptor] && !fstat(descriptor, &other) && other.st_dev == file.st_dev &&
                    other.st_ino == file.st_ino;
        }
    }
    pthread_mutex_unlock(&mutex);
    return found;
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

int rc_has_lasting_locks(const char *path) {
    (void)path;
    return 0;
}

#endif
