/* model/load.c - reads weights from the file and packs them, on all threads at once; or takes them as they were packed
 * before (model/pack_cache.h).
 *
 * Work is cut into pieces of whole row groups, about 1 MiB each; a thread claims a piece, reads it into its own staging
 * memory and packs it into place. So reading and packing overlap, and the model is never in memory twice. */
#include "model/load.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"
#include "model/pack_cache.h"
#include "model/pieces.h"

#include <string.h>

#define PIECE_BYTES ((size_t)1 << 20)

typedef struct piece {
    uint32_t weight, g0, g1; /* row groups; a vector is one piece */
    uint64_t from, n_bytes;  /* in the tensor */
} piece;

typedef struct loader {
    nib_model *model;
    const nib_model_config *config;
    piece *pieces;
    size_t n_pieces, cap_pieces, largest;
    uint64_t n_total;
    unsigned char *staging; /* of all threads */
} loader;

static size_t row_bytes(const nib_plan_weight *w) {
    return (size_t)w->n_in / w->type->block_size * w->type->block_bytes;
}

static bool add_piece(loader *l, piece p) {
    if (!nib_grow(&l->pieces, &l->cap_pieces, l->n_pieces + 1, sizeof *l->pieces)) return false;
    l->pieces[l->n_pieces++] = p;
    l->n_total += p.n_bytes;
    if (p.n_bytes > l->largest) l->largest = p.n_bytes;
    return true;
}

static bool add_matrix(loader *l, uint32_t i, const nib_plan_weight *w) {
    uint64_t group = (uint64_t)row_bytes(w) * NIB_GROUP_ROWS, total = (uint64_t)row_bytes(w) * w->n_out;
    uint32_t n_groups = (w->n_out + NIB_GROUP_ROWS - 1) / NIB_GROUP_ROWS, step = (uint32_t)(PIECE_BYTES / group);
    if (step == 0) step = 1;
    for (uint32_t g = 0; g < n_groups; g += step) {
        uint32_t end = n_groups - g > step ? g + step : n_groups;
        uint64_t last = end * group < total ? end * group : total;
        if (!add_piece(l, (piece){i, g, end, g * group, last - g * group})) return false;
    }
    return true;
}

static nib_status plan_pieces(loader *l, nib_error *err) {
    const nib_plan *plan = &l->model->plan;
    for (uint32_t i = 0; i < plan->n_weights; i++) {
        const nib_plan_weight *w = &plan->weights[i];
        bool ok = true;
        if (w->kind == NIB_WEIGHT_MATRIX || (w->kind == NIB_WEIGHT_ROWS && l->config->check_tensors)) ok = add_matrix(l, i, w);
        else if (w->kind == NIB_WEIGHT_VECTOR) ok = add_piece(l, (piece){i, 0, 1, 0, (uint64_t)w->n_out * w->type->block_bytes});
        if (!ok) return nib_fail_nomem(err, 0, "the list of weights");
    }
    return NIB_OK;
}

/* Places of all weights in one mapping, which is not made when only the plan is wanted. */
static nib_status lay_out(nib_model *model, bool plan_only, nib_error *err) {
    const nib_plan *plan = &model->plan;
    size_t at = 0, *places = nib_alloc(plan->n_weights, sizeof *places);
    nib_status status = NIB_OK;
    if (!places) return nib_fail_nomem(err, 0, "the list of weights");
    for (size_t i = 0; i < plan->n_weights; i++) {
        const nib_plan_weight *w = &plan->weights[i];
        nib_cpu_weight *out = &model->weights[i];
        size_t n = 0;
        if (w->kind == NIB_WEIGHT_MATRIX) {
            NIB_TRY_OUT(nib_cpu_matrix_init(&out->matrix, w->type, w->n_out, w->n_in, err));
            n = nib_cpu_matrix_bytes(&out->matrix);
        } else if (w->kind == NIB_WEIGHT_VECTOR) {
            n = (size_t)w->n_out * sizeof(float);
        } else {
            *out = (nib_cpu_weight){.file = model->source.file, .tensor = w->tensor};
        }
        places[i] = at;
        at += (n + 63) & ~(size_t)63; /* sizes come from tensors that fit in the file: the sum cannot wrap */
    }
    model->n_bytes = at ? at : 64;
    if (plan_only) goto out;
    uint64_t total = nib_sys_total_memory(); /* beyond it the process would be killed while it loads */
    if (model->n_bytes > total) {
        status = nib_fail(err, NIB_E_NOMEM, "the weights need %llu MiB, this machine has %llu MiB of memory",
                          (unsigned long long)model->n_bytes >> 20, (unsigned long long)total >> 20);
        goto out;
    }
    model->memory = nib_pages_new(model->n_bytes);
    if (!model->memory) {
        status = nib_fail_nomem(err, model->n_bytes, "the weights");
        goto out;
    }
    for (size_t i = 0; i < plan->n_weights; i++) {
        if (plan->weights[i].kind == NIB_WEIGHT_MATRIX) model->weights[i].matrix.data = model->memory + places[i];
        if (plan->weights[i].kind == NIB_WEIGHT_VECTOR)
            model->weights[i].vector = (const float *)(void *)(model->memory + places[i]);
    }
out:
    nib_free(places);
    return status;
}

static nib_status check_finite(const nib_plan_weight *w, const void *data, uint64_t from, uint64_t n_bytes,
                               nib_error *err) {
    if (w->type->is_finite(data, n_bytes / w->type->block_bytes * w->type->block_size)) return NIB_OK;
    return nib_fail(err, NIB_E_NUMERIC, "tensor %s holds NaN or infinity in bytes %llu to %llu of its data", w->name,
                    (unsigned long long)from, (unsigned long long)(from + n_bytes - 1));
}

static nib_status load_piece(void *arg, size_t i, int thread, uint64_t *n_bytes, nib_error *err) {
    const loader *l = arg;
    const piece *p = &l->pieces[i];
    const nib_plan_weight *w = &l->model->plan.weights[p->weight];
    nib_cpu_weight *out = &l->model->weights[p->weight];
    unsigned char *staging = l->staging + (size_t)thread * l->largest;
    NIB_TRY(nib_gguf_read(l->model->source.file, w->tensor, p->from, p->n_bytes, staging, err));
    if (l->config->check_tensors) NIB_TRY(check_finite(w, staging, p->from, p->n_bytes, err));
    if (w->kind == NIB_WEIGHT_MATRIX) nib_cpu_matrix_pack(&out->matrix, p->g0, p->g1, staging);
    if (w->kind == NIB_WEIGHT_VECTOR) w->type->dequantize(staging, (float *)(uintptr_t)out->vector, w->n_out);
    *n_bytes = p->n_bytes;
    return NIB_OK;
}

/* From the GGUF file, with `more` bytes of work to come; *n_bytes is what was read. */
static nib_status load_tensors(nib_model *model, const nib_model_config *config, nib_team *team, uint64_t more,
                               uint64_t *n_bytes, nib_error *err) {
    loader l = {.model = model, .config = config};
    size_t staging = 0;
    nib_status status;
    NIB_TRY_OUT(plan_pieces(&l, err));
    l.largest = (l.largest + 63) & ~(size_t)63;
    if (nib_mem_size((size_t)nib_team_size(team), l.largest, &staging) && staging) l.staging = nib_pages_new(staging);
    if (!l.staging) {
        status = nib_fail_nomem(err, staging, "reading the weights");
        goto out;
    }
    nib_model_pieces pieces = {.n = l.n_pieces, .run = load_piece, .arg = &l, .progress = config->progress,
                               .user = config->user, .total = l.n_total + more};
    status = nib_model_pieces_run(&pieces, team, err);
    *n_bytes = l.n_total;
out:
    nib_pages_free(l.staging, staging);
    nib_free(l.pieces);
    return status;
}

nib_status nib_model_load(nib_model *model, const nib_model_config *config, nib_error *err) {
    nib_model_pack_cache_job cache = {0};
    nib_team *team = NULL;
    nib_status status;
    int n_cpus = nib_cpu_count(NULL), n_threads = config->n_threads ? config->n_threads : n_cpus;
    uint64_t n_bytes, more;
    model->weights = nib_calloc(model->plan.n_weights, sizeof *model->weights);
    if (!model->weights) return nib_fail_nomem(err, 0, "the list of weights");
    NIB_TRY_OUT(lay_out(model, config->plan_only, err));
    if (config->plan_only) goto out;
    NIB_TRY_OUT(nib_team_new(&team, n_threads, n_cpus, err));
    NIB_TRY_OUT(nib_model_pack_cache_read(&cache, model, config, team, err));
    n_bytes = model->n_bytes, more = cache.is_wanted ? model->n_bytes : 0;
    if (!cache.is_read) {
        NIB_TRY_OUT(load_tensors(model, config, team, more, &n_bytes, err));
        NIB_TRY_OUT(nib_model_pack_cache_write(&cache, n_bytes, err));
        n_bytes += more;
    }
    if (config->progress) config->progress(config->user, n_bytes, n_bytes);
out:
    nib_model_pack_cache_free(&cache);
    nib_team_free(team);
    return status;
}

static nib_status scan_weight(const nib_gguf *file, const nib_plan_weight *w, void *staging, nib_error *err) {
    uint64_t total = w->kind == NIB_WEIGHT_VECTOR ? (uint64_t)w->n_out * w->type->block_bytes : (uint64_t)row_bytes(w) * w->n_out;
    uint64_t step = PIECE_BYTES / w->type->block_bytes * w->type->block_bytes;
    for (uint64_t from = 0; from < total; from += step) {
        uint64_t n = total - from < step ? total - from : step;
        NIB_TRY(nib_gguf_read(file, w->tensor, from, n, staging, err));
        NIB_TRY(check_finite(w, staging, from, n, err));
    }
    return NIB_OK;
}

nib_status nib_model_scan(const nib_gguf *file, const nib_plan *plan,
                          void (*report)(void *user, const nib_error *fault), void *user) {
    nib_status first = NIB_OK;
    nib_error fault;
    void *staging = nib_alloc(1, PIECE_BYTES);
    if (!staging) {
        nib_fail_nomem(&fault, PIECE_BYTES, "reading the weights");
        report(user, &fault);
        return fault.code;
    }
    for (size_t i = 0; i < plan->n_weights; i++) {
        const nib_plan_weight *w = &plan->weights[i];
        if (!w->tensor || scan_weight(file, w, staging, &fault) == NIB_OK) continue;
        first = first == NIB_OK ? fault.code : first;
        report(user, &fault);
    }
    nib_free(staging);
    return first;
}
