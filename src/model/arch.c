/* model/arch.c - finds an architecture by its name. */
#include "model/arch.h"

#include <string.h>

static const nib_arch *const archs[] = {
#define X(name) &nib_arch_##name,
#include "model/archs.def"
#undef X
};

const nib_arch *nib_arch_find(nib_str name) {
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (strlen(archs[i]->name) == name.len && memcmp(archs[i]->name, name.ptr, name.len) == 0) return archs[i];
    return NULL;
}

const char *nib_arch_names(void) {
    static const char names[] =
#define X(name) #name ", "
#include "model/archs.def"
#undef X
        "and no other";
    return names;
}
