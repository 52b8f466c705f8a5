/* jinja/builtin/functions.c - what templates call by name: range, namespace, raise_exception and the like. */
#include "base/status.h"
#include "jinja/builtin/internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_RANGE = 100000 }; /* the sandbox of jinja2 allows no more */

static bool fn_range(jinja *j, const jinja_value *v, jinja_value *out) {
    int64_t start, stop, step;
    if (!nib_jinja_want_int(j, &v[1], 0, &start) || !nib_jinja_want_int(j, &v[2], 0, &stop) ||
        !nib_jinja_want_int(j, &v[3], 1, &step))
        return false;
    if (!jinja_is_given(&v[2])) {
        stop = start;
        start = 0;
    }
    if (step == 0) return nib_jinja_fail(j, "ValueError: range() arg 3 must not be zero");
    long double span = ((long double)stop - (long double)start) / (long double)step;
    if (span > MAX_RANGE) return nib_jinja_fail(j, "OverflowError: Range too big. The sandbox blocks ranges larger than %d.", MAX_RANGE);
    uint32_t n = span <= 0 ? 0 : (uint32_t)span;
    n += span > (long double)n;
    if (!nib_jinja_list_new(j, JINJA_AS_RANGE, n, out)) return false;
    jinja_list *list = out->as.list;
    list->start = start;
    list->stop = stop;
    list->step = step;
    for (; list->n < n; list->n++) list->items[list->n] = jinja_int(start + (int64_t)list->n * step);
    return true;
}

/* dict(pairs or a dict, name=value …) */
static bool fn_dict(jinja *j, const jinja_value *v, jinja_value *out) {
    const jinja_list *args = v[1].as.list;
    jinja_value dict, *items, *pair;
    uint32_t n, two;
    if (args->n > 1) return nib_jinja_fail(j, "TypeError: dict expected at most 1 argument, got %u", args->n);
    if (!nib_jinja_dict_new(j, &dict)) return false;
    if (args->n && args->items[0].type == JINJA_DICT) {
        const jinja_dict *from = args->items[0].as.dict;
        for (uint32_t i = 0; i < from->n; i++)
            if (!nib_jinja_set(j, dict.as.dict, &from->pairs[i].key, &from->pairs[i].value)) return false;
    } else if (args->n) {
        if (!nib_jinja_items(j, &args->items[0], &items, &n)) return false;
        for (uint32_t i = 0; i < n; i++) {
            if (!nib_jinja_items(j, &items[i], &pair, &two)) return false;
            if (two != 2) return nib_jinja_fail(j, "ValueError: element %u of a dict has length %u; 2 is required", i, two);
            if (!nib_jinja_set(j, dict.as.dict, &pair[0], &pair[1])) return false;
        }
    }
    const jinja_dict *named = v[2].as.dict;
    for (uint32_t i = 0; i < named->n; i++)
        if (!nib_jinja_set(j, dict.as.dict, &named->pairs[i].key, &named->pairs[i].value)) return false;
    *out = dict;
    return true;
}

static bool fn_namespace(jinja *j, const jinja_value *v, jinja_value *out) {
    if (!fn_dict(j, v, out)) return false;
    out->type = JINJA_NAMESPACE;
    return true;
}

static bool fn_lipsum(jinja *j, const jinja_value *v, jinja_value *out) {
    (void)v, (void)out;
    return nib_jinja_fail(j, "lipsum is not supported: a prompt must not depend on chance");
}

static bool fn_cycler(jinja *j, const jinja_value *v, jinja_value *out) {
    const jinja_list *items = v[1].as.list;
    if (items->n == 0) return nib_jinja_fail(j, "RuntimeError: at least one item has to be provided");
    jinja_cycler *cycler = nib_jinja_alloc(j, sizeof *cycler);
    if (!cycler) return false;
    *cycler = (jinja_cycler){items->items, items->n, 0};
    *out = (jinja_value){.type = JINJA_CYCLER, .is_trusted = true, .as.cycler = cycler};
    return true;
}

static bool fn_joiner(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_cycler *joiner = nib_jinja_alloc(j, sizeof *joiner + sizeof(jinja_value));
    if (!joiner) return false;
    *joiner = (jinja_cycler){(jinja_value *)(joiner + 1), 1, 0};
    joiner->items[0] = jinja_is_given(&v[1]) ? v[1] : jinja_str(", ", 2);
    *out = (jinja_value){.type = JINJA_JOINER, .is_trusted = true, .as.cycler = joiner};
    return true;
}

static bool fn_raise_exception(jinja *j, const jinja_value *v, jinja_value *out) {
    (void)out;
    jinja_value text;
    if (!nib_jinja_to_str(j, &v[1], &text)) return false;
    if (text.len == 0 || !text.as.ptr[0]) return nib_jinja_fail(j, "the template raised an exception without a message");
    return nib_jinja_fail(j, "%.*s", (int)(text.len < 490 ? text.len : 490), text.as.ptr);
}

/* One conversion of strftime in the C locale: "%d", also "%-d". */
static bool put_time(jinja *j, const struct tm *tm, const char *format, size_t n, bool is_trusted) {
    char one[4], text[128];
    memcpy(one, format, n);
    one[n] = 0;
    if (!nib_jinja_work(j, JINJA_FLOAT_WORK)) return false;
    if (one[n - 1] == 'f') return nib_jinja_put(j, "000000", 6, is_trusted);
    return nib_jinja_put(j, text, strftime(text, sizeof text, one, tm), is_trusted);
}

static bool fn_strftime_now(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value format;
    struct tm tm = {0};
    time_t now = (time_t)j->now;
    if (!nib_jinja_want_str(j, &v[1], "", &format)) return false;
    if (!gmtime_r(&now, &tm)) return nib_jinja_fail(j, "the clock shows no date: %lld", (long long)j->now);
    size_t mark = nib_jinja_mark(j);
    for (size_t i = 0, n; i < format.len; i += n) {
        const char *p = format.as.ptr + i;
        size_t left = format.len - i;
        bool is_trusted = format.marks ? format.marks[i] : format.is_trusted;
        n = *p == '%' && left > 1 ? (p[1] == '-' && left > 2 ? 3 : 2) : 1;
        bool is_known = n > 1 && p[n - 1] && strchr("aAwdbBmyYHIpMSfjUWcxXGuVDFTRehnrtCgkls%", p[n - 1]);
        jinja_value part = jinja_part(format, i, i + n);
        if (!(is_known ? put_time(j, &tm, p, n, is_trusted) : nib_jinja_put_str(j, &part))) return false;
    }
    return nib_jinja_take(j, mark, out);
}

const jinja_builtin *nib_jinja_find_function(nib_str name) {
    static const jinja_builtin rows[] = {
#define FUNCTION(function_name, params, n_required, function) {function_name, params, n_required, false, fn_##function},
#include "jinja/builtin/functions.def"
#undef FUNCTION
    };
    return nib_jinja_find_row(rows, sizeof rows / sizeof *rows, name);
}
