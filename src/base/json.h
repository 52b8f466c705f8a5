/* base/json.h - a look at JSON before a parser that recurses sees it. */
#ifndef NIB_BASE_JSON_H
#define NIB_BASE_JSON_H

#include "nib.h"

/* Whether brackets nest deeper than `most`, in any text: strings are understood, other faults are left to the parser. */
bool nib_json_is_deeper(nib_str text, int most);

#endif
