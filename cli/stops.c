/* cli/stops.c - options in -> stop strings out. Called by run and chat. */
#include "stops.h"

#include "base/status.h"
#include "input.h"

nib_status nib_cli_stops_make(nib_cli_stops *stops, const nib_cli_options *opt, nib_error *err) {
    const nib_str *items = opt->stops.items;
    size_t n_bytes = 0;
    for (size_t i = 0; i < opt->stops.n; i++) {
        if (!items[i].len) return nib_fail(err, NIB_E_ARG, "-r '': a stop string cannot be empty");
        n_bytes += items[i].len;
    }
    if (!nib_buf_reserve(&stops->text, n_bytes)) return nib_fail_nomem(err, n_bytes, "stop strings");
    for (size_t i = 0; i < opt->stops.n; i++) { /* unescaping never makes longer: the buffer does not move any more */
        size_t start = stops->text.len;
        if (opt->escape)
            nib_cli_unescape(items[i], &stops->text);
        else
            nib_buf_append(&stops->text, items[i].ptr, items[i].len);
        nib_str stop = {stops->text.ptr + start, stops->text.len - start};
        if (!nib_cli_list_append(&stops->list, &stop, 1, sizeof stop))
            return nib_fail_nomem(err, sizeof stop, "stop strings");
    }
    return NIB_OK;
}

void nib_cli_stops_free(nib_cli_stops *stops) {
    nib_buf_free(&stops->text);
    nib_cli_list_free(&stops->list);
}
