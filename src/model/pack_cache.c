/* model/pack_cache.c - packed weights in memory <-> a file: head, checksums, and the memory as it is, in pieces.
 *
 * The head names the packed layout, the list of weights and the GGUF files (gguf/identity.h); a file whose head is not
 * the expected one, byte for byte, is not taken. Nothing in a file is trusted: its size and the places of everything in
 * it follow from the plan. A file's name says which model it holds, not in which state, so that an outdated one is
 * replaced.
 *
 *     head | checksum of the head, and of each MiB of data | zeros up to 4 KiB | data */
#include "model/pack_cache.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/pieces.h"

#include <string.h>

#define PIECE_BYTES ((size_t)1 << 20)
#define ALIGNMENT 4096u
#define MAGIC "nibpack"

typedef unsigned long long ull;

/* ------------------------------------------------------------------------------------------------ identity */

static uint64_t hash_text(uint64_t hash, const char *text) {
    return nib_hash64(hash, text, strlen(text));
}

static uint64_t hash_weights(const nib_model *model) {
    uint64_t hash = 0;
    for (size_t i = 0; i < model->plan.n_weights; i++) {
        const nib_plan_weight *w = &model->plan.weights[i];
        const nib_cpu_weight *packed = &model->weights[i];
        const void *at = w->kind == NIB_WEIGHT_MATRIX ? (const void *)packed->matrix.data : packed->vector;
        uint64_t numbers[] = {w->kind, w->n_in, w->n_out, 0};
        if (w->kind != NIB_WEIGHT_ROWS) numbers[3] = (uint64_t)((const unsigned char *)at - model->memory);
        hash = hash_text(hash_text(hash, w->name), w->type->name);
        hash = nib_hash64(hash, numbers, sizeof numbers);
    }
    return hash;
}

static uint64_t head_sum(const nib_model_pack_cache_job *job) {
    return nib_hash64(nib_hash64(0, &job->head, sizeof job->head), job->sums + 1, job->n_pieces * sizeof *job->sums);
}

static nib_status prepare(nib_model_pack_cache_job *job, nib_error *err) {
    nib_model *model = job->model;
    nib_model_pack_head *head = &job->head;
    *head = (nib_model_pack_head){.magic = MAGIC, .version = NIB_CPU_PACK_VERSION, .byte_order = 0x01020304,
                                  .n_bytes = model->n_bytes, .weights = hash_weights(model)};
    NIB_TRY(nib_gguf_identify(model->source.file, &head->model, err));
    job->n_pieces = (model->n_bytes - 1) / PIECE_BYTES + 1;
    job->sums = nib_calloc(1 + job->n_pieces, sizeof *job->sums);
    if (!job->sums) return nib_fail_nomem(err, 0, "checksums of weights");
    job->data_at = sizeof *head + (1 + job->n_pieces) * sizeof *job->sums;
    job->data_at = (job->data_at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    uint64_t name = nib_hash64(head->model.content, &head->weights, sizeof head->weights);
    return nib_model_pack_file_init(&job->file, job->config->pack_cache, name, err);
}

/* ------------------------------------------------------------------------------------------------ pieces */

static size_t piece_bytes(const nib_model_pack_cache_job *job, size_t i) {
    size_t left = job->model->n_bytes - i * PIECE_BYTES;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static nib_status read_piece(void *arg, size_t i, int thread, uint64_t *n_bytes, nib_error *err) {
    const nib_model_pack_cache_job *job = arg;
    size_t n = piece_bytes(job, i), from = i * PIECE_BYTES;
    unsigned char *at = job->model->memory + from;
    (void)thread;
    NIB_TRY(nib_model_pack_file_read(&job->file, job->data_at + from, at, n, err));
    if (nib_hash64(0, at, n) != job->sums[1 + i])
        return nib_fail(err, NIB_E_FORMAT, "is damaged between bytes %llu and %llu", (ull)(job->data_at + from),
                        (ull)(job->data_at + from + n - 1));
    *n_bytes = n;
    return NIB_OK;
}

static nib_status write_piece(void *arg, size_t i, int thread, uint64_t *n_bytes, nib_error *err) {
    nib_model_pack_cache_job *job = arg;
    size_t n = piece_bytes(job, i), from = i * PIECE_BYTES;
    const unsigned char *at = job->model->memory + from;
    (void)thread;
    job->sums[1 + i] = nib_hash64(0, at, n);
    NIB_TRY(nib_model_pack_file_write(&job->file, job->data_at + from, at, n, err));
    *n_bytes = n;
    return NIB_OK;
}

static nib_status run_pieces(nib_model_pack_cache_job *job, uint64_t done,
                             nib_status (*run)(void *arg, size_t i, int thread, uint64_t *n_bytes, nib_error *err),
                             nib_error *err) {
    nib_model_pieces pieces = {.n = job->n_pieces, .run = run, .arg = job, .progress = job->config->progress,
                               .user = job->config->user, .done = done, .total = done + job->model->n_bytes};
    return nib_model_pieces_run(&pieces, job->team, err);
}

/* ------------------------------------------------------------------------------------------------ reading */

/* Says what a head is that is not the expected one. */
static nib_status refuse(const nib_model_pack_head *found, const nib_model_pack_head *want, nib_error *err) {
    if (memcmp(found->magic, want->magic, sizeof want->magic) != 0 || found->byte_order != want->byte_order)
        return nib_fail(err, NIB_E_FORMAT, "is no packed form of this kind of machine");
    if (found->version != want->version)
        return nib_fail(err, NIB_E_FORMAT, "is of version %lu, expected %lu", (unsigned long)found->version,
                        (unsigned long)want->version);
    if (found->model.times != want->model.times)
        return nib_fail(err, NIB_E_FORMAT, "is older than the model file, or of another copy of it");
    return nib_fail(err, NIB_E_FORMAT, "is of another model");
}

static nib_status read_all(nib_model_pack_cache_job *job, nib_error *err) {
    const nib_model_pack_file *file = &job->file;
    nib_model_pack_head found;
    uint64_t n_bytes = 0, want = job->data_at + job->head.n_bytes;
    NIB_TRY(nib_model_pack_file_open(&job->file, &n_bytes, err));
    if (file->fd < 0) return NIB_OK;
    NIB_TRY(nib_model_pack_file_read(file, 0, &found, sizeof found, err));
    if (memcmp(&found, &job->head, sizeof found) != 0) return refuse(&found, &job->head, err);
    if (n_bytes != want)
        return nib_fail(err, NIB_E_FORMAT, "has %llu bytes, expected %llu", (ull)n_bytes, (ull)want);
    NIB_TRY(nib_model_pack_file_read(file, sizeof found, job->sums, (1 + job->n_pieces) * sizeof *job->sums, err));
    if (head_sum(job) != job->sums[0]) return nib_fail(err, NIB_E_FORMAT, "is damaged in its list of checksums");
    NIB_TRY(run_pieces(job, 0, read_piece, err));
    job->is_read = true;
    return NIB_OK;
}

/* NIB_E_CANCELLED is an error of the load; all others end up in model->pack_cache. */
static nib_status cancelled(const nib_error *error, nib_error *err) {
    if (error->code != NIB_E_CANCELLED) return NIB_OK;
    if (err) *err = *error;
    return NIB_E_CANCELLED;
}

nib_status nib_model_pack_cache_read(nib_model_pack_cache_job *job, nib_model *model, const nib_model_config *config,
                                     nib_team *team, nib_error *err) {
    if (!config->pack_cache || !*config->pack_cache || config->check_tensors) return NIB_OK;
    nib_error *refused = &job->refused;
    job->model = model;
    job->config = config;
    job->team = team;
    nib_error error = {0};
    if (prepare(job, &error) != NIB_OK) {
        nib_fail(&model->pack_cache, error.code, "packed weights are not kept in %s: %s", config->pack_cache, error.message);
        return NIB_OK;
    }
    job->is_wanted = true;
    if (read_all(job, refused) != NIB_OK) {
        NIB_TRY(cancelled(refused, err));
        memset(model->memory, 0, model->n_bytes); /* as packing expects it */
    } else if (job->is_read) {
        nib_fail(&model->pack_cache, NIB_OK, "packed weights read from %s", job->file.path);
    }
    return NIB_OK;
}

/* ------------------------------------------------------------------------------------------------ writing */

static nib_status write_all(nib_model_pack_cache_job *job, uint64_t done, nib_error *err) {
    nib_gguf_identity now;
    NIB_TRY(nib_gguf_identify(job->model->source.file, &now, err));
    if (memcmp(&now, &job->head.model, sizeof now) != 0)
        return nib_fail(err, NIB_E_CHANGED, "the model file changed while it was read");
    NIB_TRY(nib_model_pack_file_create(&job->file, job->data_at + job->head.n_bytes, err));
    NIB_TRY(run_pieces(job, done, write_piece, err));
    job->sums[0] = head_sum(job);
    NIB_TRY(nib_model_pack_file_write(&job->file, sizeof job->head, job->sums, (1 + job->n_pieces) * sizeof *job->sums, err));
    NIB_TRY(nib_model_pack_file_write(&job->file, 0, &job->head, sizeof job->head, err));
    return nib_model_pack_file_finish(&job->file, err);
}

nib_status nib_model_pack_cache_write(nib_model_pack_cache_job *job, uint64_t done, nib_error *err) {
    if (!job->is_wanted) return NIB_OK;
    const char *path = job->file.path, *why = job->refused.message;
    nib_error error = {0}, *said = &job->model->pack_cache;
    nib_status status = write_all(job, done, &error);
    NIB_TRY(cancelled(&error, err));
    if (status == NIB_OK) nib_fail(said, NIB_OK, "packed weights written to %s", path);
    else nib_fail(said, status, "packed weights not written to %s: %s", path, error.message);
    if (status == NIB_E_CHANGED) said->code = NIB_OK; /* somebody else is at work: the next load will do */
    if (job->refused.code != NIB_OK) nib_error_prefix(said, "the file there %s", why);
    return NIB_OK;
}

void nib_model_pack_cache_free(nib_model_pack_cache_job *job) {
    nib_model_pack_file_fini(&job->file);
    nib_free(job->sums);
}
