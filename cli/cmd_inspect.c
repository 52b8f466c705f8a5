/* cli/cmd_inspect.c - nib inspect: a GGUF file in -> metadata, tensors, parameters, bytes by type out; with --plan the
 * steps that the model becomes and what they cost, with --machine how fast another machine could be. Weights are not read. */
#include "base/status.h"
#include "cost.h"
#include "json.h"
#include "list.h"
#include "metadata.h"
#include "session.h"
#include "tokens.h"

#include <stdio.h>
#include <string.h>

typedef struct type_sum {
    const char *name;
    uint64_t n_tensors, n_elements, n_bytes;
} type_sum;

typedef struct inspect_state {
    nib_cli_session s;
    nib_cli_out out;
    nib_cli_list types; /* type_sum */
    uint64_t n_params;
} inspect_state;

static nib_status sum_types(inspect_state *t, nib_error *err) {
    for (size_t i = 0; i < nib_gguf_n_tensors(t->s.file); i++) {
        const nib_gguf_tensor *tensor = nib_gguf_tensor_at(t->s.file, i);
        type_sum *sums = t->types.items, fresh = {.name = tensor->type_name};
        size_t k = 0;
        while (k < t->types.n && strcmp(sums[k].name, tensor->type_name)) k++;
        if (k == t->types.n && !nib_cli_list_append(&t->types, &fresh, 1, sizeof fresh))
            return nib_fail_nomem(err, sizeof fresh, "types");
        sums = t->types.items;
        sums[k].n_tensors++;
        sums[k].n_elements += tensor->n_elements;
        sums[k].n_bytes += tensor->n_bytes;
        t->n_params += tensor->n_elements;
    }
    return NIB_OK;
}

/* ---- text */

static void print_metadata(inspect_state *t) {
    const nib_gguf *file = t->s.file;
    nib_buf path = {0};
    nib_cli_escaped(&path, (nib_str){nib_gguf_path(file), strlen(nib_gguf_path(file))});
    nib_cli_out_printf(&t->out, "file        %.*s\nformat      GGUF version %u, alignment %u, %u file%s, %llu bytes\n",
                       (int)path.len, path.ptr, nib_gguf_version(file), nib_gguf_alignment(file),
                       nib_gguf_n_files(file), nib_gguf_n_files(file) == 1 ? "" : "s",
                       (unsigned long long)nib_gguf_file_bytes(file));
    nib_buf_free(&path);
    nib_cli_out_printf(&t->out, "parameters  %llu in %zu tensors\n\nmetadata    %zu keys\n",
                       (unsigned long long)t->n_params, nib_gguf_n_tensors(file), nib_gguf_n_keys(file));
    for (size_t i = 0; i < nib_gguf_n_keys(file); i++) {
        const nib_gguf_value *value;
        nib_str key = nib_gguf_key_at(file, i, &value);
        nib_buf line = {0};
        nib_buf_str(&line, "  ");
        nib_cli_escaped(&line, key);
        nib_buf_printf(&line, "%*s %-6s ", key.len < 42 ? 42 - (int)key.len : 0, "", nib_gguf_type_name(value->type));
        nib_cli_metadata_text(&line, value);
        nib_buf_char(&line, '\n');
        nib_cli_out_write(&t->out, nib_cli_bytes(&line));
        nib_buf_free(&line);
    }
}

static void print_tensors(inspect_state *t) {
    const type_sum *sums = t->types.items;
    nib_cli_out_printf(&t->out, "\ntensors     %zu\n", nib_gguf_n_tensors(t->s.file));
    for (size_t i = 0; i < nib_gguf_n_tensors(t->s.file); i++) {
        const nib_gguf_tensor *tensor = nib_gguf_tensor_at(t->s.file, i);
        nib_buf line = {0};
        nib_buf_str(&line, "  ");
        nib_cli_escaped(&line, tensor->name);
        nib_buf_printf(&line, "%*s %-8s %12llu bytes  ", tensor->name.len < 34 ? 34 - (int)tensor->name.len : 0, "",
                       tensor->type_name, (unsigned long long)tensor->n_bytes);
        for (uint32_t d = 0; d < tensor->n_dims && d < 4; d++)
            nib_buf_printf(&line, "%s%llu", d ? " x " : "", (unsigned long long)tensor->dims[d]);
        nib_buf_str(&line, tensor->is_supported ? "\n" : "  (not supported)\n");
        nib_cli_out_write(&t->out, nib_cli_bytes(&line));
        nib_buf_free(&line);
    }
    nib_cli_out_puts(&t->out, "\ntypes\n");
    for (size_t i = 0; i < t->types.n; i++)
        nib_cli_out_printf(&t->out, "  %-8s %5llu tensors %14llu parameters %14llu bytes %8.4f bits each\n",
                           sums[i].name, (unsigned long long)sums[i].n_tensors, (unsigned long long)sums[i].n_elements,
                           (unsigned long long)sums[i].n_bytes,
                           sums[i].n_elements ? 8.0 * (double)sums[i].n_bytes / (double)sums[i].n_elements : 0.0);
}

/* ---- JSON */

static json_t *tensors_json(const nib_gguf *file) {
    json_t *list = json_array();
    for (size_t i = 0; i < nib_gguf_n_tensors(file); i++) {
        const nib_gguf_tensor *tensor = nib_gguf_tensor_at(file, i);
        json_t *o = json_object(), *dims = json_array();
        for (uint32_t d = 0; d < tensor->n_dims && d < 4; d++)
            json_array_append_new(dims, json_integer((json_int_t)tensor->dims[d]));
        json_object_set_new(o, "name", nib_cli_json_str(tensor->name));
        nib_cli_json_set_str(o, "type", tensor->type_name);
        json_object_set_new(o, "supported", json_boolean(tensor->is_supported));
        json_object_set_new(o, "dims", dims);
        nib_cli_json_set_int(o, "n_elements", tensor->n_elements);
        nib_cli_json_set_int(o, "n_bytes", tensor->n_bytes);
        nib_cli_json_set_int(o, "offset", tensor->offset);
        nib_cli_json_set_int(o, "file", tensor->file);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *file_json(const inspect_state *t) {
    const nib_gguf *file = t->s.file;
    const type_sum *sums = t->types.items;
    json_t *o = json_object(), *metadata = json_object(), *types = json_object();
    for (size_t i = 0; i < nib_gguf_n_keys(file); i++) {
        const nib_gguf_value *value;
        nib_str key = nib_gguf_key_at(file, i, &value);
        json_t *name = nib_cli_json_str(key); /* keys of JSON must be UTF-8, too */
        json_object_set_new_nocheck(metadata, json_string_value(name), nib_cli_metadata_json(value));
        json_decref(name);
    }
    for (size_t i = 0; i < t->types.n; i++) {
        json_t *type = json_object();
        nib_cli_json_set_int(type, "tensors", sums[i].n_tensors);
        nib_cli_json_set_int(type, "parameters", sums[i].n_elements);
        nib_cli_json_set_int(type, "bytes", sums[i].n_bytes);
        json_object_set_new(types, sums[i].name, type);
    }
    nib_cli_json_set_str(o, "file", nib_gguf_path(file));
    nib_cli_json_set_int(o, "version", nib_gguf_version(file));
    nib_cli_json_set_int(o, "alignment", nib_gguf_alignment(file));
    nib_cli_json_set_int(o, "files", nib_gguf_n_files(file));
    nib_cli_json_set_int(o, "bytes", nib_gguf_file_bytes(file));
    nib_cli_json_set_int(o, "parameters", t->n_params);
    json_object_set_new(o, "types", types);
    json_object_set_new(o, "metadata", metadata);
    json_object_set_new(o, "tensors", tensors_json(file));
    return o;
}

/* ---- the plan */

static const nib_cli_batch_shape decode = {1, 1, 0, 1}, prefill = {512, 1, 0, 1};

static nib_status plan_totals(const nib_model *model, uint64_t *decode_macs, uint64_t *prefill_macs, nib_error *err) {
    NIB_TRY(nib_cli_plan_macs(model, decode, decode_macs, err));
    return nib_cli_plan_macs(model, prefill, prefill_macs, err);
}

static nib_status print_plan(inspect_state *t, nib_error *err) {
    const nib_model *model = t->s.model;
    unsigned long long bytes = nib_model_bytes_per_token(model), kv = nib_model_kv_bytes_per_token(model, "f16", "f16");
    uint64_t decode_macs, prefill_macs;
    NIB_TRY(plan_totals(model, &decode_macs, &prefill_macs, err));
    nib_cli_out_printf(&t->out, "\nplan        %s, %zu steps; TOK: tokens of the batch, OUT: rows with logits\n",
                       nib_model_arch(model), nib_model_n_steps(model));
    nib_cli_out_printf(&t->out, "  %4s  %-10s %-20s %-6s %-22s %12s %14s\n", "step", "op", "name", "type", "shape",
                       "bytes", "MACs a row");
    for (size_t i = 0; i < nib_model_n_steps(model); i++) {
        nib_step_info step;
        char op[24], shape[64];
        if (nib_model_step(model, i, &step) != NIB_OK) continue;
        snprintf(shape, sizeof shape, "%s x %llu -> %llu", step.rows, (unsigned long long)step.n_in,
                 (unsigned long long)step.n_out);
        snprintf(op, sizeof op, "%s%s%s", step.op, step.fused[0] ? "+" : "", step.fused);
        nib_cli_out_printf(&t->out, "  %4zu  %-10s %-20s %-6s %-22s %12llu %14llu%s\n", i, op, step.name,
                           step.type, shape, (unsigned long long)step.bytes, (unsigned long long)step.macs,
                           strcmp(step.op, "attention") ? "" : " a position");
    }
    double decode_mega = (double)decode_macs / 1e6, prefill_mega = (double)prefill_macs / 1e6;
    nib_cli_out_printf(&t->out, "  one decode step        %14.3f million MACs, reads %llu bytes of weights, and %llu "
                       "bytes of f16 cache for each position\n", decode_mega, bytes, kv);
    nib_cli_out_printf(&t->out, "  a 512-token prefill    %14.3f million MACs, %.3f a token\n", prefill_mega,
                       prefill_mega / (double)prefill.n_tok);
    return NIB_OK;
}

static nib_status plan_json(const nib_model *model, json_t *out, nib_error *err) {
    uint64_t decode_macs, prefill_macs;
    json_t *o = json_object(), *steps = json_array();
    json_object_set_new(out, "plan", o);
    json_object_set_new(o, "steps", steps);
    for (size_t i = 0; i < nib_model_n_steps(model); i++) {
        nib_step_info step;
        if (nib_model_step(model, i, &step) != NIB_OK) continue;
        json_t *item = json_object();
        nib_cli_json_set_str(item, "op", step.op);
        nib_cli_json_set_str(item, "fused", step.fused);
        nib_cli_json_set_str(item, "name", step.name);
        nib_cli_json_set_str(item, "type", step.type);
        nib_cli_json_set_str(item, "rows", step.rows);
        nib_cli_json_set_int(item, "layer", step.layer);
        nib_cli_json_set_int(item, "n_in", step.n_in);
        nib_cli_json_set_int(item, "n_out", step.n_out);
        nib_cli_json_set_int(item, "bytes", step.bytes);
        nib_cli_json_set_int(item, "macs", step.macs);
        json_array_append_new(steps, item);
    }
    NIB_TRY(plan_totals(model, &decode_macs, &prefill_macs, err));
    nib_cli_json_set_int(o, "decode_macs", decode_macs);
    nib_cli_json_set_int(o, "prefill_512_macs", prefill_macs);
    nib_cli_json_set_int(o, "bytes_per_token", nib_model_bytes_per_token(model));
    nib_cli_json_set_int(o, "kv_bytes_per_position", nib_model_kv_bytes_per_token(model, "f16", "f16"));
    return NIB_OK;
}

/* What the limits of the machine of --machine allow: the bytes of a token by its bandwidth, products by its peak. */
typedef struct at_best {
    double decode_tok_s, prefill_tok_s;
    bool is_read; /* what bounds decoding */
} at_best;

static nib_status judge_machine(const inspect_state *t, at_best *out, nib_error *err) {
    nib_cli_limit limit;
    NIB_TRY(nib_cli_machine_read(&limit, t->s.opt->machine, err));
    nib_cli_cache cache = nib_cli_cache_of(t->s.model, "f16", "f16");
    nib_cli_work one = nib_cli_plan_work(t->s.model, decode, cache), many = nib_cli_plan_work(t->s.model, prefill, cache);
    out->decode_tok_s = 1 / nib_cli_bound(&one, &limit, NULL);
    out->prefill_tok_s = (double)prefill.n_tok / nib_cli_bound(&many, &limit, NULL);
    out->is_read = nib_cli_bound_is_read(&one, &limit, NULL);
    return NIB_OK;
}

static nib_status print_machine(inspect_state *t, nib_error *err) {
    at_best best;
    NIB_TRY(judge_machine(t, &best, err));
    nib_cli_out_printf(&t->out, "\nmachine     %s\n  decode at most         %14.2f tokens/s: %llu bytes a token, bound by %s\n"
                       "  prefill at most        %14.2f tokens/s, for 512 tokens\n", t->s.opt->machine, best.decode_tok_s,
                       (unsigned long long)nib_model_bytes_per_token(t->s.model), best.is_read ? "reading" : "arithmetic",
                       best.prefill_tok_s);
    return NIB_OK;
}

static nib_status machine_json(inspect_state *t, json_t *out, nib_error *err) {
    at_best best;
    NIB_TRY(judge_machine(t, &best, err));
    json_t *o = json_object();
    json_object_set_new(out, "machine", o);
    nib_cli_json_set_real(o, "decode_tok_s", best.decode_tok_s);
    nib_cli_json_set_real(o, "prefill_512_tok_s", best.prefill_tok_s);
    nib_cli_json_set_str(o, "bound", best.is_read ? "read" : "macs");
    nib_cli_json_set_int(o, "bytes_per_token", (int64_t)nib_model_bytes_per_token(t->s.model));
    return NIB_OK;
}

static nib_status inspect(inspect_state *t, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    const nib_str *operands = opt->operands.items;
    const char *path = opt->operands.n ? operands[0].ptr : opt->model;
    if (!path || opt->operands.n + (opt->model != NULL) > 1)
        return nib_fail(err, NIB_E_ARG, "expected one file: nib inspect FILE.gguf");
    NIB_TRY(nib_cli_session_file(&t->s, opt, term, path, err));
    NIB_TRY(sum_types(t, err));
    t->s.plan_only = true;
    if (opt->plan || opt->machine) NIB_TRY(nib_cli_session_model(&t->s, err));
    if (opt->json) {
        json_t *o = file_json(t);
        nib_status status = opt->plan ? plan_json(t->s.model, o, err) : NIB_OK;
        if (opt->machine && status == NIB_OK) status = machine_json(t, o, err);
        if (status == NIB_OK)
            nib_cli_json_write(&t->out, o);
        else
            json_decref(o);
        return status;
    }
    print_metadata(t);
    print_tensors(t);
    if (opt->plan) NIB_TRY(print_plan(t, err));
    return opt->machine ? print_machine(t, err) : NIB_OK;
}

int nib_cli_cmd_inspect(const nib_cli_options *opt, const nib_cli_term *term) {
    inspect_state t = {0};
    nib_error err;
    nib_cli_out_open(&t.out);
    int status = inspect(&t, opt, term, &err) == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    nib_cli_list_free(&t.types);
    nib_cli_session_close(&t.s);
    return nib_cli_out_close(&t.out, term, status);
}
