// Whole files: read in one piece, and written so that a reader sees the old
// file or the new one, never half of it.
//
// Errors: functions that fail write one sentence into `message` (at most
// `message_size` bytes, always terminated) that names the file, what went
// wrong and the remedy. 512 bytes hold every sentence.
// Threads: safe, as long as one writer is used by one thread at a time.
#ifndef WEIR_BASE_FILE_H
#define WEIR_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Opens a regular file for reading and stores its descriptor and its size.
// Anything else (a directory, a pipe, a device) is refused, without blocking.
//
// Ownership: the descriptor is the caller's, to be closed with close(). It is
// not inherited over exec.
// Errors: false; `*out_descriptor` is -1 and `*out_size` 0.
bool weir_file_open(const char *path, int *out_descriptor, uint64_t *out_size, char *message,
                    size_t message_size);

// Reads exactly `size` bytes at the descriptor's position into `data`. `path`
// serves the message.
//
// Errors: false on a read error or when the file ends early.
bool weir_file_read_exactly(int descriptor, const char *path, void *data, size_t size,
                            char *message, size_t message_size);

// Reads a whole regular file of at most `limit_bytes` bytes. The data is followed
// by a zero byte that `*out_size` does not count, so text can be used as a string.
//
// Ownership: `*out_data` is the caller's, to be freed with free().
// Errors: false; `*out_data` is NULL and `*out_size` 0.
bool weir_file_read(const char *path, size_t limit_bytes, void **out_data, size_t *out_size,
                    char *message, size_t message_size);

// The same for a file that only this user can have written: it belongs to the effective user,
// nobody else may write to it, and the path's last part is no symbolic link. All of it is
// checked of the file that was opened.
bool weir_file_read_trusted(const char *path, size_t limit_bytes, void **out_data, size_t *out_size,
                            char *message, size_t message_size);

// A file being written. The data goes into a temporary file in the same directory
// (".weir-PROCESS-NUMBER.tmp"); commit syncs it to the disk and renames it over
// the path. If anything fails, the temporary file is removed and the file at the
// path stays as it was. A new file gets the permissions that the umask leaves; a
// file that is replaced passes its permissions on; a symbolic link is replaced, not
// followed; a directory or a device at the path is refused.
//
// A writer locks its temporary file, so the temporary files of killed processes are known by
// having no lock: the next writer in the same directory removes those of its user.
//
//     weir_file_writer *writer = weir_file_writer_create(path, message, size);
//     if (!writer)
//         return false;
//     weir_file_writer_append(writer, data, data_size);
//     return weir_file_writer_commit(&writer, message, size);
typedef struct weir_file_writer weir_file_writer;

// Starts a file. Returns NULL on failure, and then nothing was created.
//
// Ownership: the caller's, until commit or destroy.
weir_file_writer *weir_file_writer_create(const char *path, char *message, size_t message_size);

// The same for a file that only this user may read and write, whatever the umask is and
// whatever it replaces.
weir_file_writer *weir_file_writer_create_private(const char *path, char *message,
                                                  size_t message_size);

// Appends `size` bytes. The first failure sticks: later appends do nothing and
// commit reports it, so the result need not be looked at.
bool weir_file_writer_append(weir_file_writer *writer, const void *data, size_t size);

// Puts the file in place and destroys the writer, whether that works or not.
bool weir_file_writer_commit(weir_file_writer **writer, char *message, size_t message_size);

// Drops the file, as if it had never been started. Accepts NULL, and nulls.
void weir_file_writer_destroy(weir_file_writer **writer);

// Writes a whole file from one piece of memory.
bool weir_file_write(const char *path, const void *data, size_t size, char *message,
                     size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
