/* chat/output/param.c - the text of a parameter -> a JSON value of the type that its schema wants. */
#include "chat/output/json.h"
#include "chat/output/literal.h"

static unsigned type_of(nib_str json) {
    switch (*json.ptr) {
    case '"': return NIB_CHAT_STRING;
    case '{': return NIB_CHAT_OBJECT;
    case '[': return NIB_CHAT_ARRAY;
    case 'n': return NIB_CHAT_NULL;
    case 't':
    case 'f': return NIB_CHAT_BOOLEAN;
    default: return NIB_CHAT_NUMBER;
    }
}

/* As JSON, of one of the types. */
static bool put_json(nib_str text, unsigned types, nib_buf *out) {
    return nib_chat_json_is_valid(text) && types & type_of(text) && nib_buf_append(out, text.ptr, text.len);
}

static bool put_python(nib_str text, unsigned types, nib_buf *out) {
    size_t len = out->len;
    bool ok = nib_chat_python_value(text, out) && types & type_of((nib_str){out->ptr + len, out->len - len});
    if (!ok) out->len = len;
    return ok;
}

bool nib_chat_param_put(nib_str text, const nib_chat_schema *schema, nib_buf *out) {
    unsigned types = nib_chat_schema_types(schema);
    nib_str trimmed = nib_chat_trim(text);
    unsigned wanted =
        types & NIB_CHAT_STRING ? types & ~(unsigned)NIB_CHAT_STRING : ~(types ? 0u : (unsigned)NIB_CHAT_STRING);
    if (wanted && put_json(trimmed, wanted, out)) return true;
    if (types && wanted && put_python(trimmed, wanted & ~(unsigned)NIB_CHAT_STRING, out)) return true;
    return nib_chat_json_put(out, text);
}
