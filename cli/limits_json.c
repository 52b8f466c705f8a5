/* cli/limits_json.c - limits as JSON and back: nib limits --json, the cache file, and --machine FILE. */
#include "limits.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

static json_t *peaks_json(const nib_cli_limit *row) {
    json_t *list = json_array();
    for (size_t i = 0; i < row->n_peaks; i++) {
        json_t *o = json_object();
        nib_cli_json_set_str(o, "isa", row->peaks[i].isa);
        nib_cli_json_set_real(o, "int8_gmac_s", row->peaks[i].int8_macs / 1e9);
        nib_cli_json_set_real(o, "f32_gmac_s", row->peaks[i].f32_macs / 1e9);
        json_array_append_new(list, o);
    }
    return list;
}

static void set_key(size_t i, char *out, size_t size) {
    snprintf(out, size, "%u_mib", nib_cli_set_mib[i]);
}

/* Sets that a cache may hold, beside "read_gb_s", which is of memory. */
static json_t *sets_json(const nib_cli_limit *row) {
    json_t *o = json_object();
    char key[16];
    for (size_t i = 0; i + 1 < NIB_CLI_N_SETS; i++) {
        set_key(i, key, sizeof key);
        nib_cli_json_set_real(o, key, row->read_bytes[i] / 1e9);
    }
    return o;
}

json_t *nib_cli_limits_json(const nib_cli_limits *limits) {
    json_t *o = json_object(), *rows = json_array();
    nib_cli_json_set_str(o, "cpu", limits->cpu);
    nib_cli_json_set_str(o, "cpus_allowed", limits->allowed);
    nib_cli_json_set_str(o, "version", nib_version());
    nib_cli_json_set_int(o, "best_threads", nib_cli_limits_best_threads(limits));
    json_object_set_new(o, "limits", rows);
    for (size_t i = 0; i < limits->n_rows; i++) {
        json_t *row = json_object();
        nib_cli_json_set_int(row, "threads", limits->rows[i].n_threads);
        nib_cli_json_set_real(row, "read_gb_s", limits->rows[i].read_bytes[NIB_CLI_N_SETS - 1] / 1e9);
        json_object_set_new(row, "read_sets_gb_s", sets_json(&limits->rows[i]));
        json_object_set_new(row, "peaks", peaks_json(&limits->rows[i]));
        json_array_append_new(rows, row);
    }
    if (limits->kernels) json_object_set(o, "kernels", limits->kernels);
    return o;
}

static bool get_text(const json_t *object, const char *key, char *out, size_t size) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value) || json_string_length(value) >= size) return false;
    memcpy(out, json_string_value(value), json_string_length(value) + 1);
    return true;
}

/* A rate above 0 in billions a second. */
static bool get_rate(const json_t *object, const char *key, double *out) {
    double x = json_number_value(json_object_get(object, key));
    *out = x * 1e9;
    return x > 0 && x < 1e9;
}

static bool parse_peaks(nib_cli_limit *row, const json_t *list) {
    size_t i;
    const json_t *item;
    if (!json_is_array(list) || json_array_size(list) > NIB_CLI_MAX_PEAKS) return false;
    json_array_foreach(list, i, item) {
        nib_cli_peak *peak = &row->peaks[row->n_peaks++];
        if (!get_text(item, "isa", peak->isa, sizeof peak->isa) || !get_rate(item, "int8_gmac_s", &peak->int8_macs) ||
            !get_rate(item, "f32_gmac_s", &peak->f32_macs))
            return false;
    }
    return true;
}

/* "read_gb_s", and for smaller sets "read_sets_gb_s" where it is given. */
static bool parse_read(nib_cli_limit *row, const json_t *object) {
    const json_t *sets = json_object_get(object, "read_sets_gb_s");
    double memory;
    char key[16];
    if (!get_rate(object, "read_gb_s", &memory)) return false;
    for (size_t i = 0; i < NIB_CLI_N_SETS; i++) {
        row->read_bytes[i] = memory;
        set_key(i, key, sizeof key);
        if (json_object_get(sets, key) && !get_rate(sets, key, &row->read_bytes[i])) return false;
    }
    return true;
}

bool nib_cli_limits_parse(nib_cli_limits *out, const json_t *value) {
    *out = (nib_cli_limits){0};
    const json_t *rows = json_object_get(value, "limits"), *item;
    size_t i;
    if (!get_text(value, "cpu", out->cpu, sizeof out->cpu) ||
        !get_text(value, "cpus_allowed", out->allowed, sizeof out->allowed) || !json_is_array(rows) ||
        json_array_size(rows) < 1 || json_array_size(rows) > NIB_CLI_MAX_LIMITS)
        return false;
    json_array_foreach(rows, i, item) {
        nib_cli_limit *row = &out->rows[i];
        json_int_t n = json_integer_value(json_object_get(item, "threads"));
        if (n < 1 || n > 1024 || (i ? n <= out->rows[i - 1].n_threads : n != 1)) return false;
        row->n_threads = (int)n;
        if (!parse_read(row, item) || !parse_peaks(row, json_object_get(item, "peaks"))) return false;
        if (row->n_peaks != out->rows[0].n_peaks) return false;
    }
    out->n_rows = json_array_size(rows);
    json_t *kernels = json_object_get(value, "kernels");
    if (json_is_object(kernels)) out->kernels = json_incref(kernels);
    return true;
}

nib_status nib_cli_machine_read(nib_cli_limit *out, const char *path, nib_error *err) {
    json_error_t why;
    nib_cli_limits limits;
    json_t *value = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    *out = (nib_cli_limit){.n_threads = 1, .n_peaks = 1};
    if (!value) return nib_fail(err, NIB_E_FORMAT, "%s: %s (line %d)", path, why.text, why.line);
    bool ok = json_object_get(value, "limits") != NULL;
    if (ok) {
        ok = nib_cli_limits_parse(&limits, value);
        if (ok) *out = limits.rows[limits.n_rows - 1];
        nib_cli_limits_free(&limits);
    } else {
        ok = parse_read(out, value) && get_rate(value, "int8_gmac_s", &out->peaks[0].int8_macs) &&
             get_rate(value, "f32_gmac_s", &out->peaks[0].f32_macs);
    }
    json_decref(value);
    if (ok) return NIB_OK;
    return nib_fail(err, NIB_E_FORMAT, "%s: expected what nib limits --json prints, or the numbers read_gb_s, int8_gmac_s and "
                    "f32_gmac_s", path);
}
