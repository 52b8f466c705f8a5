/* base/status.h - errors as values: nib_fail fills a nib_error, NIB_TRY passes one on.
 *
 * Every function that can fail returns nib_status and takes nib_error *err last; err may be NULL. Messages are one line
 * for a person and name what was found and what was expected. */
#ifndef NIB_BASE_STATUS_H
#define NIB_BASE_STATUS_H

#include "nib.h"

/* Fills *err (if not NULL) and returns code. The message is cut to fit and cleaned by nib_clean_line. */
nib_status nib_fail(nib_error *err, nib_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same with a byte offset in the input. */
nib_status nib_fail_at(nib_error *err, nib_status code, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* NIB_E_NOMEM for n bytes (0: not said) that were wanted for `what`. */
nib_status nib_fail_nomem(nib_error *err, uint64_t n_bytes, const char *what);
/* NIB_E_IO with the text of an errno value after the message: "cannot open: No such file or directory". */
nib_status nib_fail_errno(nib_error *err, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Makes a text one line of UTF-8 that a terminal shows and does not obey: control characters and bytes that are not
 * UTF-8 become '?'. Names in messages come from files. */
void nib_clean_line(char *text);
/* Puts "prefix: " before the message of an error that is passed up; a prefix beyond 197 bytes is cut. */
void nib_error_prefix(nib_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Passes an error on from a function that owns nothing yet. */
#define NIB_TRY(expr)                                                                                                  \
    do {                                                                                                               \
        nib_status nib_try_status_ = (expr);                                                                           \
        if (nib_try_status_ != NIB_OK) return nib_try_status_;                                                         \
    } while (0)

/* Passes an error on by way of `out:`, where a variable `status` is returned after the cleanup. */
#define NIB_TRY_OUT(expr)                                                                                              \
    do {                                                                                                               \
        status = (expr);                                                                                               \
        if (status != NIB_OK) goto out;                                                                                \
    } while (0)

/* For printf("%.*s", NIB_STR_ARG(s)). Cuts at 200 bytes, enough for any name worth printing. */
#define NIB_STR_ARG(s) ((s).len > 200 ? 200 : (int)(s).len), ((s).ptr ? (s).ptr : "")

#endif
