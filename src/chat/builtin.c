/* chat/builtin.c - the rows of builtin.def: name -> text of a chat template. */
#include "nib.h"

#include <string.h>

#include "chat/builtin_text.inc" /* made of builtin/ by CMakeLists.txt */

#define BUILTIN(name, file) {nib_chat_text_##file, sizeof nib_chat_text_##file - 1},
static const nib_str texts[] = {
#include "chat/builtin.def"
};
#undef BUILTIN

#define BUILTIN(name, file) name,
static const char *const names[] = {
#include "chat/builtin.def"
    NULL,
};
#undef BUILTIN

const char *const *nib_chat_builtin_names(void) {
    return names;
}

nib_str nib_chat_builtin_find(const char *name) {
    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return texts[i];
    return (nib_str){0};
}
