/* cli/isa.c - chooses the best level that this machine can run, whatever its processor claims: the library tests a level
 * by running it (nib_isa_usable); where that faults, the program goes on with the next. */
#include "isa.h"

#include "nib.h"
#include "signals.h"

const char *nib_cli_isa_best(const nib_cli_term *term) {
    const char *faulty = NULL;
    for (const char *const *name = nib_isa_names(); *name; name++) {
        bool usable;
        if (!nib_cli_signals_survive(nib_isa_usable, *name, &usable)) faulty = *name;
        else if (usable) {
            const char *trouble = faulty ? NULL : nib_isa_trouble();
            if (faulty) nib_cli_warning(term, "the processor claims %s and faults in its test: using %s", faulty, *name);
            if (trouble) nib_cli_warning(term, "%s: using %s", trouble, *name);
            return *name;
        }
    }
    return NULL;
}
