/* server/error.c - faults -> JSON (error.h). */
#include "error.h"

#include "base/status.h"
#include "json.h"

#include <stdio.h>
#include <string.h>

static nib_status fill(nib_server_fault *fault, int status, const char *format, va_list args) {
    fault->status = status;
    vsnprintf(fault->message, sizeof fault->message, format, args);
    nib_clean_line(fault->message);
    return NIB_E_ARG;
}

nib_status nib_server_refuse(nib_server_fault *fault, const char *param, const char *format, ...) {
    va_list args;
    *fault = (nib_server_fault){0};
    snprintf(fault->param, sizeof fault->param, "%s", param ? param : "");
    nib_clean_line(fault->param);
    va_start(args, format);
    fill(fault, 400, format, args);
    va_end(args);
    return NIB_E_ARG;
}

nib_status nib_server_fail(nib_server_fault *fault, int status, const char *code, const char *format, ...) {
    va_list args;
    *fault = (nib_server_fault){.code = code};
    va_start(args, format);
    fill(fault, status, format, args);
    va_end(args);
    return NIB_E_ARG;
}

/* "messages[0].content: is …": the path that such a message begins with, if it does. */
static size_t path_length(const char *message) {
    size_t n = strspn(message, "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.[]");
    return n && message[n] == ':' && message[n + 1] == ' ' ? n : 0;
}

nib_status nib_server_fault_of(nib_server_fault *fault, const nib_error *err, const char *param) {
    static const struct {
        nib_status code;
        int status;
        const char *name;
    } rows[] = {
        {NIB_E_NOMEM, 503, "out_of_memory"}, {NIB_E_BUSY, 503, "queue_full"}, {NIB_E_NUMERIC, 500, "numeric_error"},
        {NIB_E_IO, 500, "io_error"},         {NIB_E_KV_FULL, 503, "queue_full"}, {NIB_E_CANCELLED, 503, "shutting_down"},
    };
    *fault = (nib_server_fault){.status = 400};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (err->code == rows[i].code) fault->status = rows[i].status, fault->code = rows[i].name;
    size_t n = fault->status == 400 ? path_length(err->message) : 0;
    if (n) snprintf(fault->param, sizeof fault->param, "%.*s", (int)n, err->message);
    else if (param && fault->status == 400) snprintf(fault->param, sizeof fault->param, "%s", param);
    snprintf(fault->message, sizeof fault->message, "%s", err->message);
    if (fault->status == 503) fault->retry_s = 1;
    return err->code;
}

const char *nib_server_error_type(int status) {
    static const struct {
        int status;
        const char *type;
    } types[] = {{401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"}, {429, "rate_limit_error"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].status == status) return types[i].type;
    return status < 500 ? "invalid_request_error" : "server_error";
}

void nib_server_error_json(const nib_server_fault *fault, nib_buf *out) {
    json_t *error = json_object(), *whole = json_object();
    json_object_set_new(error, "message", nib_server_json_str((nib_str){fault->message, strlen(fault->message)}));
    json_object_set_new(error, "type", json_string(nib_server_error_type(fault->status)));
    json_object_set_new(error, "param", fault->param[0] ? json_string(fault->param) : json_null());
    json_object_set_new(error, "code", fault->code ? json_string(fault->code) : json_null());
    json_object_set_new(whole, "error", error);
    nib_server_json_put(whole, out);
}
