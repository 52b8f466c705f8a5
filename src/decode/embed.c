/* decode/embed.c - pooling, and nib_embed: ids in -> the vector of a text out. */
#include "decode/embed.h"

#include "base/mem.h"
#include "base/status.h"
#include "decode/context.h"

#include <math.h>
#include <string.h>

nib_status nib_decode_embed_init(nib_decode_embed *e, const nib_model *model, nib_pooling pooling, nib_error *err) {
    *e = (nib_decode_embed){.pooling = pooling, .n_embd = nib_model_n_embd(model)};
    if (pooling < NIB_POOLING_MEAN || pooling > NIB_POOLING_LAST)
        return nib_fail(err, NIB_E_ARG, "pooling is %d, expected mean, cls or last (1 to 3)", (int)pooling);
    e->sum = nib_calloc(e->n_embd, sizeof *e->sum);
    return e->sum ? NIB_OK : nib_fail_nomem(err, e->n_embd * sizeof *e->sum, "a sum of hidden states");
}

void nib_decode_embed_fini(nib_decode_embed *e) {
    nib_free(e->sum);
    e->sum = NULL;
}

void nib_decode_embed_reset(nib_decode_embed *e) {
    memset(e->sum, 0, e->n_embd * sizeof *e->sum);
    e->n_added = 0;
}

bool nib_decode_embed_wants(const nib_decode_embed *e, size_t pos, size_t n) {
    return e->pooling == NIB_POOLING_MEAN || pos == (e->pooling == NIB_POOLING_LAST ? n - 1 : 0);
}

void nib_decode_embed_add(nib_decode_embed *e, const float *row) {
    for (uint32_t i = 0; i < e->n_embd; i++) e->sum[i] += (double)row[i];
    e->n_added++;
}

nib_status nib_decode_embed_finish(const nib_decode_embed *e, float *out, nib_error *err) {
    for (uint32_t i = 0; i < e->n_embd; i++) {
        out[i] = (float)(e->sum[i] / (double)e->n_added);
        if (!isfinite(out[i])) return nib_fail(err, NIB_E_NUMERIC, "value %u of the embedding is %g", i, (double)out[i]);
    }
    return NIB_OK;
}

void nib_normalise(float *vector, size_t n) {
    double squares = 0;
    for (size_t i = 0; i < n; i++) squares += (double)vector[i] * (double)vector[i];
    if (squares == 0) return;
    double length = sqrt(squares);
    for (size_t i = 0; i < n; i++) vector[i] = (float)((double)vector[i] / length);
}

/* Positions first … first+n-1 of the n_ids. */
static nib_status run_part(nib_context *ctx, nib_batch *batch, nib_decode_embed *e, const nib_token *ids, size_t first, size_t n,
                           size_t n_ids, nib_error *err) {
    nib_batch_clear(batch);
    nib_batch_want_hidden(batch);
    for (size_t i = first; i < first + n; i++)
        NIB_TRY(nib_batch_add(batch, ids[i], NIB_POS_NEXT, 0, nib_decode_embed_wants(e, i, n_ids), err));
    NIB_TRY(nib_decode(ctx, batch, err));
    const float *row;
    for (uint32_t i = 0; (row = nib_hidden(ctx, i)); i++) nib_decode_embed_add(e, row);
    return NIB_OK;
}

nib_status nib_embed(nib_context *ctx, const nib_token *ids, size_t n, nib_pooling pooling, float *out, nib_error *err) {
    nib_decode_embed e;
    nib_batch *batch = NULL;
    nib_status status;
    size_t most = ctx->config.n_ubatch;
    if (n == 0) return nib_fail(err, NIB_E_ARG, "a text without tokens has no embedding");
    nib_seq_free(ctx, 0);
    NIB_TRY_OUT(nib_decode_embed_init(&e, ctx->model, pooling, err));
    NIB_TRY_OUT(nib_batch_new(&batch, (uint32_t)(n < most ? n : most), err));
    for (size_t i = 0; i < n; i += most)
        NIB_TRY_OUT(run_part(ctx, batch, &e, ids, i, n - i < most ? n - i : most, n, err));
    status = nib_decode_embed_finish(&e, out, err);
out:
    nib_seq_free(ctx, 0);
    nib_batch_free(batch);
    nib_decode_embed_fini(&e);
    return status;
}
