/* server/openai_models.c - GET /v1/models and /v1/models/{id}. */
#include "base/hex.h"
#include "base/status.h"
#include "internal.h"
#include "routes.h"

#include <string.h>

static json_t *model_json(const nib_server *server, nib_str name) {
    json_t *o = json_object();
    json_object_set_new(o, "id", nib_server_json_str(name));
    json_object_set_new(o, "object", json_string("model"));
    json_object_set_new(o, "created", json_integer(server->started));
    json_object_set_new(o, "owned_by", json_string("nib"));
    json_object_set_new(o, "root", nib_server_json_str(nib_server_model_name(server)));
    json_object_set_new(o, "parent", json_null());
    if (atomic_load(&server->state) != NIB_SERVER_LOADING)
        json_object_set_new(o, "max_model_len", json_integer(server->model.max_context));
    return o;
}

void nib_server_route_models(nib_server *server, nib_server_exchange *x) {
    json_t *list = json_object(), *data = json_array();
    for (size_t i = 0; i < server->config.n_models; i++) json_array_append_new(data, model_json(server, server->config.models[i]));
    json_object_set_new(list, "object", json_string("list"));
    json_object_set_new(list, "data", data);
    nib_server_reply_json(x, list);
}

/* Undoes %2F and its like. */
static void unescape(nib_str text, nib_buf *out) {
    for (size_t i = 0; i < text.len; i++) {
        int high = text.ptr[i] == '%' && i + 2 < text.len ? nib_hex_digit(text.ptr[i + 1]) : -1;
        int low = high >= 0 ? nib_hex_digit(text.ptr[i + 2]) : -1;
        if (low >= 0) i += 2;
        nib_buf_char(out, low >= 0 ? (char)(high << 4 | low) : text.ptr[i]);
    }
}

void nib_server_route_model(nib_server *server, nib_server_exchange *x) {
    static const char prefix[] = "/v1/models/";
    nib_str path = nib_server_http_path(x);
    nib_server_fault fault;
    nib_buf name = {0};
    unescape((nib_str){path.ptr + sizeof prefix - 1, path.len - (sizeof prefix - 1)}, &name);
    for (size_t i = 0; i < server->config.n_models; i++) {
        nib_str known = server->config.models[i];
        if (known.len != name.len || (name.len && memcmp(known.ptr, name.ptr, name.len) != 0)) continue;
        nib_server_reply_json(x, model_json(server, known));
        nib_buf_free(&name);
        return;
    }
    nib_str shown = {name.ptr, name.len};
    nib_server_fail(&fault, 404, "model_not_found", "the model \"%.*s\" is not here; this server has \"%.*s\"", NIB_STR_ARG(shown),
                    NIB_STR_ARG(nib_server_model_name(server)));
    nib_buf_free(&name);
    nib_server_reply_fault(x, NULL, &fault);
}
