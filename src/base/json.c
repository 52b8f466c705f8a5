/* base/json.c - how deep JSON nests. */
#include "base/json.h"

bool nib_json_is_deeper(nib_str text, int most) {
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '[' || c == '{') && ++depth > most)
            return true;
        else if (!in_string && (c == ']' || c == '}'))
            depth--;
    }
    return false;
}
