/* Preloaded library: counts the calls on files below a folder, and makes one of them fail.
 *
 * The folder is the environment variable FAULTS_BELOW, an absolute path without links. Nothing happens until faults_arm() is
 * called; a process that forks arms the child. Every counted call is a line of the trace: its number, its name, the name or
 * names below the folder, and "fails" where it was made to.
 *
 * The system is called directly. So nothing here calls itself, and headers that declare these functions are not needed; C and
 * C++ compilers accept the file. A call that the program makes without the C library is not seen; of all that Ramify writes, strace shows one:
 * the safetensors library renames its temporary file by itself.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <errno.h>
#include <linux/fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#ifdef __cplusplus
extern "C" {
#endif

long syscall(long number, ...);

enum { COUNT, ONCE, FROM_NOW_ON, SHORT, KILL_BEFORE, KILL_AFTER, REPORT_AFTER };
enum { NAME = 4096, SIGNAL_KILL = 9 };

static long fails_at, calls, trace = -1;
static int kind, code, is_armed, refuses_swaps;

void faults_arm(long at, int how, int error, int trace_to, int without_swaps) {
  fails_at = at, kind = how, code = error, trace = trace_to, refuses_swaps = without_swaps, calls = 0, is_armed = 1;
}

void faults_disarm(void) { is_armed = 0; }

/* ---- which calls are meant ---- */

static const char *below(const char *path) {
  const char *folder = getenv("FAULTS_BELOW");
  size_t length = folder ? strlen(folder) : 0;
  if (!length || strncmp(path, folder, length) || (path[length] && path[length] != '/')) return NULL;
  return path[length] ? path + length + 1 : ".";
}

static int link_target(const char *link, char *into) {
  long length = syscall(SYS_readlinkat, AT_FDCWD, link, into, (size_t)NAME - 1);
  into[length > 0 ? length : 0] = 0;
  return length > 0;
}

static void name_of_handle(char *into, const char *before, int handle) {
  char digits[12];
  int count = 0;
  do digits[count++] = (char)('0' + handle % 10);
  while (handle /= 10);
  strcpy(into, before);
  into += strlen(into);
  while (count) *into++ = digits[--count];
  *into = 0;
}

static const char *handle_below(int handle, char *buffer) {
  char link[40];
  if (!is_armed || handle < 0) return NULL;
  name_of_handle(link, "/proc/self/fd/", handle);
  return link_target(link, buffer) ? below(buffer) : NULL;
}

static const char *path_below(int directory, const char *path, char *buffer) {
  char link[40];
  size_t length;
  if (!is_armed || !path) return NULL;
  if (path[0] == '/') return below(path);
  strcpy(link, "/proc/self/cwd");
  if (directory != AT_FDCWD) name_of_handle(link, "/proc/self/fd/", directory);
  if (!link_target(link, buffer) || (length = strlen(buffer)) + strlen(path) + 2 > NAME) return NULL;
  buffer[length] = '/';
  strcpy(buffer + length + 1, path);
  return below(buffer);
}

/* ---- what becomes of them ---- */

static void write_trace(long number, const char *call, const char *name, const char *other, int fails) {
  char line[2 * NAME + 80], *end;
  if (trace < 0) return;
  name_of_handle(line, "", (int)number);
  for (end = line + strlen(line); call; call = name, name = other, other = NULL) {
    *end++ = '\t';
    strcpy(end, call);
    end += strlen(end);
  }
  if (fails) strcpy(end, "\tfails"), end += 6;
  *end++ = '\n';
  syscall(SYS_write, (int)trace, line, (size_t)(end - line));
}

static int takes_room(const char *call) {
  static const char *calls_that_do[] = {"create", "write", "pwrite", "mkdir", "link", "ftruncate"};
  for (size_t k = 0; k < sizeof calls_that_do / sizeof *calls_that_do; k++)
    if (!strcmp(call, calls_that_do[k])) return 1;
  return 0;
}

static void die(void) { syscall(SYS_kill, syscall(SYS_getpid), SIGNAL_KILL); }

/* Counts a call, and says how it is to fail: COUNT if it is not. */
static int judge(const char *call, const char *name, const char *other) {
  long number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  int is_later = kind == FROM_NOW_ON && number > fails_at && (code == ENOSPC ? takes_room(call) : strcmp(call, "close") != 0);
  int fails = kind != COUNT && (number == fails_at || is_later);
  /* the rest of a disk that is full takes a part of the data, and nothing more */
  if (kind == SHORT && code && number == fails_at + 1 && takes_room(call)) {
    write_trace(number, call, name, other, 1);
    return ONCE;
  }
  write_trace(number, call, name, other, fails);
  if (fails && kind == KILL_BEFORE) die();
  return fails ? kind : COUNT;
}

static long finish(int how, long result) {
  if (how == KILL_AFTER) die();
  if (how != REPORT_AFTER) return result;
  errno = code;
  return -1;
}

#define FAIL_IF_MEANT(call, name, other)            \
  int how = (name) ? judge(call, name, other) : COUNT; \
  if (how == ONCE || how == FROM_NOW_ON) {          \
    errno = code;                                   \
    return -1;                                      \
  }

/* ---- the calls ---- */

static int open_at(int directory, const char *path, int flags, unsigned mode) {
  char buffer[NAME];
  const char *name = path_below(directory, path, buffer);
  FAIL_IF_MEANT(flags & O_CREAT ? "create" : "open", name, NULL)
  return (int)finish(how, syscall(SYS_openat, directory, path, flags, mode));
}

#define MODE_OF(flags)                                      \
  unsigned mode = 0;                                        \
  if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) {   \
    va_list more;                                           \
    va_start(more, flags);                                  \
    mode = va_arg(more, unsigned);                          \
    va_end(more);                                           \
  }

int open(const char *path, int flags, ...) {
  MODE_OF(flags)
  return open_at(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  MODE_OF(flags)
  return open_at(AT_FDCWD, path, flags, mode);
}
int openat(int directory, const char *path, int flags, ...) {
  MODE_OF(flags)
  return open_at(directory, path, flags, mode);
}
int openat64(int directory, const char *path, int flags, ...) {
  MODE_OF(flags)
  return open_at(directory, path, flags, mode);
}
int creat(const char *path, unsigned mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, unsigned mode) { return creat(path, mode); }

long write(int handle, const void *data, size_t size) {
  char buffer[NAME];
  FAIL_IF_MEANT("write", handle_below(handle, buffer), NULL)
  return finish(how, syscall(SYS_write, handle, data, how == SHORT && size > 1 ? size / 2 : size));
}

static long write_at(int handle, const void *data, size_t size, long offset) {
  char buffer[NAME];
  FAIL_IF_MEANT("pwrite", handle_below(handle, buffer), NULL)
  return finish(how, syscall(SYS_pwrite64, handle, data, how == SHORT && size > 1 ? size / 2 : size, offset));
}
long pwrite(int handle, const void *data, size_t size, long offset) { return write_at(handle, data, size, offset); }
long pwrite64(int handle, const void *data, size_t size, long offset) { return write_at(handle, data, size, offset); }

struct iovec;
long writev(int handle, const struct iovec *parts, int count) {
  char buffer[NAME];
  FAIL_IF_MEANT("write", handle_below(handle, buffer), NULL)
  return finish(how, syscall(SYS_writev, handle, parts, how == SHORT ? 1 : count));
}

int fsync(int handle) {
  char buffer[NAME];
  FAIL_IF_MEANT("fsync", handle_below(handle, buffer), NULL)
  return (int)finish(how, syscall(SYS_fsync, handle));
}
int fdatasync(int handle) {
  char buffer[NAME];
  FAIL_IF_MEANT("fdatasync", handle_below(handle, buffer), NULL)
  return (int)finish(how, syscall(SYS_fdatasync, handle));
}

static int truncate_to(int handle, long size) {
  char buffer[NAME];
  FAIL_IF_MEANT("ftruncate", handle_below(handle, buffer), NULL)
  return (int)finish(how, syscall(SYS_ftruncate, handle, size));
}
int ftruncate(int handle, long size) { return truncate_to(handle, size); }
int ftruncate64(int handle, long size) { return truncate_to(handle, size); }

/* a handle is closed even if an error is reported */
int close(int handle) {
  char buffer[NAME];
  const char *name = handle_below(handle, buffer);
  int how = name ? judge("close", name, NULL) : COUNT;
  return (int)finish(how == ONCE || how == FROM_NOW_ON ? REPORT_AFTER : how, syscall(SYS_close, handle));
}

static int rename_at(int from, const char *old, int to, const char *path, unsigned flags) {
  char first[NAME], second[NAME];
  const char *name = path_below(from, old, first), *other = path_below(to, path, second);
  if (is_armed && refuses_swaps && flags) {
    errno = EINVAL;
    return -1;
  }
  FAIL_IF_MEANT(flags ? "swap" : "rename", name ? name : other, name ? other : NULL)
  return (int)finish(how, syscall(SYS_renameat2, from, old, to, path, flags));
}
int rename(const char *old, const char *path) { return rename_at(AT_FDCWD, old, AT_FDCWD, path, 0); }
int renameat(int from, const char *old, int to, const char *path) { return rename_at(from, old, to, path, 0); }
int renameat2(int from, const char *old, int to, const char *path, unsigned flags) {
  return rename_at(from, old, to, path, flags);
}

int linkat(int from, const char *old, int to, const char *path, int flags) {
  char first[NAME], second[NAME];
  const char *name = path_below(from, old, first), *other = path_below(to, path, second);
  FAIL_IF_MEANT("link", name ? name : other, name ? other : NULL)
  return (int)finish(how, syscall(SYS_linkat, from, old, to, path, flags));
}
int link(const char *old, const char *path) { return linkat(AT_FDCWD, old, AT_FDCWD, path, 0); }

int unlinkat(int directory, const char *path, int flags) {
  char buffer[NAME];
  FAIL_IF_MEANT(flags ? "rmdir" : "unlink", path_below(directory, path, buffer), NULL)
  return (int)finish(how, syscall(SYS_unlinkat, directory, path, flags));
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
  int result = unlinkat(AT_FDCWD, path, 0);
  return result && errno == EISDIR ? rmdir(path) : result;
}

int mkdirat(int directory, const char *path, unsigned mode) {
  char buffer[NAME];
  FAIL_IF_MEANT("mkdir", path_below(directory, path, buffer), NULL)
  return (int)finish(how, syscall(SYS_mkdirat, directory, path, mode));
}
int mkdir(const char *path, unsigned mode) { return mkdirat(AT_FDCWD, path, mode); }

void *opendir(const char *path) {
  typedef void *(*Open)(const char *);
  char buffer[NAME];
  const char *name = path_below(AT_FDCWD, path, buffer);
  int how = name ? judge("opendir", name, NULL) : COUNT;
  if (how == COUNT) return ((Open)dlsym(RTLD_NEXT, "opendir"))(path);
  if (how == KILL_AFTER) die();
  errno = code;
  return NULL;
}

int fchmodat(int directory, const char *path, unsigned mode, int flags) {
  char buffer[NAME];
  FAIL_IF_MEANT("chmod", path_below(directory, path, buffer), NULL)
  (void)flags; /* the system ignores it */
  return (int)finish(how, syscall(SYS_fchmodat, directory, path, mode));
}
int chmod(const char *path, unsigned mode) { return fchmodat(AT_FDCWD, path, mode, 0); }
int fchmod(int handle, unsigned mode) {
  char buffer[NAME];
  FAIL_IF_MEANT("chmod", handle_below(handle, buffer), NULL)
  return (int)finish(how, syscall(SYS_fchmod, handle, mode));
}

#ifdef __cplusplus
}
#endif
