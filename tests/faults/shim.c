/* Counts what a process does to files below one folder, and lets one such operation go wrong.

   Preloaded (LD_PRELOAD), it stands between every library of the process and the C library, so that writes of Arrow and
   DuckDB are met like those of Python. Nothing happens before `faults_arm`. The operation of that number is then
     'k' killed:  the process is gone before it, by SIGKILL
     'h' halved:  of a write the first half is done, and then the process is gone
     'e' failed:  it is not done, and the error is given
     'f' failing: it and all later ones fail, as on a disk that is full or broken for good
     'd' delayed: it is done a little later
   Each operation is told to a file, if one is named: its number, its kind and its path. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char below[4096];
static size_t below_length;
static atomic_long counted;
static long at = -1;
static char how;
static int error_number;
static int told = -1;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void faults_arm(const char *folder, long number, char kind, int error, const char *tell) {
    told = tell && *tell ? REAL(open)(tell, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    at = number;
    how = kind;
    error_number = error;
    atomic_store(&counted, 0);
    strncpy(below, folder, sizeof below - 1);
    below_length = strlen(below);
}

long faults_counted(void) { return atomic_load(&counted); }

static int is_below(const char *path) {
    return below_length && path && !strncmp(path, below, below_length) && path[below_length] == '/';
}

static int of_handle(int handle, char *path, size_t length) {
    char link[64];
    if (!below_length) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, path, length - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_below(path);
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* 0: do it. 1: fail. 2: do half of it, and die. */
static int meet(const char *kind, const char *path) {
    long number = atomic_fetch_add(&counted, 1);
    if (told >= 0) dprintf(told, "%ld %s %s\n", number, kind, path + below_length + 1);
    if (at < 0 || number < at || (number > at && how != 'f')) return 0;
    if (how == 'k') die();
    if (how == 'h') return 2;
    if (how == 'd') {
        usleep(300000);
        return 0;
    }
    errno = error_number;
    return 1;
}

static int meet_plain(const char *kind, const char *path) {
    int found = meet(kind, path);
    if (found == 2) die();
    return found;
}

#define ONE_PATH(type, name, kind, parameters, path, arguments)                                                        \
    type name parameters {                                                                                             \
        if (is_below(path) && meet_plain(kind, path)) return -1;                                                       \
        return REAL(name) arguments;                                                                                   \
    }

ONE_PATH(int, rename, "rename", (const char *from, const char *to), to, (from, to))
ONE_PATH(int, renameat, "rename", (int a, const char *from, int b, const char *to), to, (a, from, b, to))
ONE_PATH(int, unlink, "unlink", (const char *path), path, (path))
ONE_PATH(int, link, "link", (const char *from, const char *to), to, (from, to))
ONE_PATH(int, mkdir, "mkdir", (const char *path, mode_t mode), path, (path, mode))
ONE_PATH(int, rmdir, "rmdir", (const char *path), path, (path))
ONE_PATH(int, truncate, "truncate", (const char *path, off_t length), path, (path, length))

int unlinkat(int folder, const char *path, int flags) {
    char full[4096];
    if (*path != '/' && of_handle(folder, full, sizeof full - 1)) {
        size_t used = strlen(full);
        snprintf(full + used, sizeof full - used, "/%s", path);
        if (meet_plain("unlink", full)) return -1;
    } else if (is_below(path) && meet_plain("unlink", path)) {
        return -1;
    }
    return REAL(unlinkat)(folder, path, flags);
}

#define ONE_HANDLE(name, kind, parameters, handle, arguments)                                                          \
    int name parameters {                                                                                              \
        char path[4096];                                                                                               \
        if (of_handle(handle, path, sizeof path) && meet_plain(kind, path)) return -1;                                 \
        return REAL(name) arguments;                                                                                   \
    }

ONE_HANDLE(fsync, "fsync", (int handle), handle, (handle))
ONE_HANDLE(fdatasync, "fsync", (int handle), handle, (handle))
ONE_HANDLE(ftruncate, "truncate", (int handle, off_t length), handle, (handle, length))

#define WRITE(name, parameters, whole, half)                                                                           \
    ssize_t name parameters {                                                                                          \
        char path[4096];                                                                                               \
        int found = of_handle(handle, path, sizeof path) ? meet("write", path) : 0;                                    \
        if (found == 1) return -1;                                                                                     \
        if (found == 2) {                                                                                              \
            (void)!REAL(name) half;                                                                                    \
            die();                                                                                                     \
        }                                                                                                              \
        return REAL(name) whole;                                                                                       \
    }

WRITE(write, (int handle, const void *data, size_t length), (handle, data, length), (handle, data, length / 2))
WRITE(pwrite, (int handle, const void *data, size_t length, off_t place), (handle, data, length, place),
      (handle, data, length / 2, place))
WRITE(pwrite64, (int handle, const void *data, size_t length, off64_t place), (handle, data, length, place),
      (handle, data, length / 2, place))

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                        \
        va_end(more);                                                                                                  \
        if ((flags & O_CREAT) && is_below(path) && meet_plain("create", path)) return -1;                              \
        return REAL(name)(path, flags, mode);                                                                          \
    }

OPEN(open)
OPEN(open64)
