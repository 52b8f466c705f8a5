/* examples/generate.c - the whole of text generation against nib.h: MODEL and PROMPT in, text out.
 *
 *     cc generate.c $(pkg-config --cflags --libs nib) -o generate
 *     ./generate models/SmolLM2-135M-Instruct.Q4_1.gguf "Once upon a time"
 *
 * Every call may fail and says why in err; the macro keeps the loop readable. */
#include <nib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) != NIB_OK) {                                                                                        \
            fprintf(stderr, "generate: %s\n", err.message);                                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: generate MODEL.gguf PROMPT\n");
        return 2;
    }
    nib_error err;
    nib_gguf *file;
    nib_tokenizer *tok;
    nib_model *model;
    nib_context *ctx;
    nib_batch *batch;
    nib_sampler *sampler;
    nib_detok *detok;
    nib_token_list ids = {0};
    TRY(nib_gguf_open(&file, argv[1], NULL, &err));
    TRY(nib_tokenizer_new(&tok, file, NULL, &err));
    TRY(nib_model_open(&model, file, NULL, &err));
    nib_context_config config = NIB_CONTEXT_CONFIG_INIT;
    config.n_ctx = 2048;
    TRY(nib_context_new(&ctx, model, &config, &err));
    TRY(nib_batch_new(&batch, nib_context_n_batch(ctx), &err));
    TRY(nib_sampler_new(&sampler, NULL, nib_model_n_vocab(model), &err));
    TRY(nib_detok_new(&detok, tok, 0, true, &err));

    TRY(nib_tokenize(tok, argv[2], strlen(argv[2]), NIB_ADD_SPECIAL, &ids, &err));
    for (size_t i = 0; i < ids.n; i++) {
        TRY(nib_batch_add(batch, ids.ids[i], NIB_POS_NEXT, 0, i + 1 == ids.n, &err));
        TRY(nib_sampler_accept(sampler, ids.ids[i], &err));
    }
    printf("%s", argv[2]);
    for (int n = 0; n < 64; n++) {
        nib_token id;
        nib_str piece;
        TRY(nib_decode(ctx, batch, &err)); // the prompt in the first round, one token from then on
        TRY(nib_sampler_sample(sampler, nib_logits(ctx, 0), NULL, nib_seq_length(ctx, 0), &id, &err));
        if (nib_tokenizer_is_eog(tok, id)) break;
        TRY(nib_sampler_accept(sampler, id, &err));
        TRY(nib_detok_push(detok, id, &piece, &err));
        fwrite(piece.ptr, 1, piece.len, stdout);
        fflush(stdout);
        nib_batch_clear(batch);
        TRY(nib_batch_add(batch, id, NIB_POS_NEXT, 0, true, &err));
    }
    nib_str rest = nib_detok_finish(detok);
    printf("%.*s\n", (int)rest.len, rest.ptr);

    nib_detok_free(detok);
    nib_sampler_free(sampler);
    nib_batch_free(batch);
    nib_context_free(ctx);
    nib_model_close(model);
    nib_token_list_free(&ids);
    nib_tokenizer_free(tok);
    nib_gguf_close(file);
    return 0;
}
