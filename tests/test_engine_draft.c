/* tests/test_engine_draft.c - guesses change no bit: ids, rows of logits and log-probabilities are those of a plain loop, greedy and
 * sampled, with samplers that remember, with few pages, beside other requests, with grammars. */
#include "engine/engine.h"
#include "support/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 8 };

/* Prompts that repeat, so that there is something to guess; greedy answers of tiny models soon do, too. */
static void make_jobs(const engine_fixture *f, engine_job *jobs) {
    static const nib_token breaker = 3;
    static const uint32_t breaker_length = 1;
    for (uint32_t k = 0; k < N; k++) {
        engine_job *j = &jobs[k];
        *j = (engine_job){.n_prompt = 40 + 13 * k, .max_tokens = k == 7 ? 2 : ENGINE_ANSWER, .sampling = NIB_SAMPLER_PARAMS_INIT};
        nib_sampler_params *s = &j->sampling;
        s->seed = k;
        s->temp = k % 2 ? 0.05f : 0;
        if (k == 2) s->penalty_repeat = 1.1f, s->penalty_last_n = 10;
        if (k == 3) s->mirostat = 2, s->temp = 0.3f;
        if (k == 4) s->dry_multiplier = 0.5f, s->dry_breakers = &breaker, s->dry_breaker_lengths = &breaker_length, s->n_dry_breakers = 1;
        if (k == 5) s->adaptive_target = 0.9f, s->chain = "top_k;temperature;adaptive_p";
        for (uint32_t i = 0; i < j->n_prompt; i++) j->prompt[i] = (nib_token)((i % (5 + k)) * 29 % f->n_vocab);
        engine_compute(f, j);
    }
}

static uint64_t run(const engine_fixture *f, const engine_job *jobs, const nib_engine_config *c, uint32_t at_once, const char *what) {
    nib_engine *e = engine_start(f, c);
    nib_engine_figures figures;
    for (uint32_t k = 0; k < N; k += at_once) engine_run_all(e, jobs + k, at_once, what);
    engine_assert_settled(e);
    nib_engine_stats(e, &figures);
    assert_true(figures.n_accepted <= figures.n_drafted);
    engine_end(e);
    if (!c->max_draft) assert_int_equal(figures.n_drafted, 0);
    print_message("%s: %u of %u guesses were right, %u tokens in %u turns\n", what, (unsigned)figures.n_accepted,
                  (unsigned)figures.n_drafted, (unsigned)figures.n_generated, (unsigned)figures.n_turns);
    return figures.n_accepted;
}

static void test_same_bits(void **state) {
    (void)state;
    static const char *const archs[] = {"llama", "gemma3"};
    for (int a = 0; a < 2; a++) {
        engine_fixture f;
        engine_job *jobs = calloc(N, sizeof *jobs);
        uint64_t n_right = 0;
        engine_open_model(&f, archs[a]);
        make_jobs(&f, jobs);
        nib_engine_config c = engine_config(4096, N);
        n_right += run(&f, jobs, &c, 1, "alone");
        n_right += run(&f, jobs, &c, 2, "two at once");
        run(&f, jobs, &c, N, "all at once");
        c.max_chunk = 13; /* leaves one token of each prompt for a turn of its own, as an answer has */
        run(&f, jobs, &c, 2, "cut prompts");
        c.max_chunk = 0;
        c.no_prefix_cache = true;
        n_right += run(&f, jobs, &c, 1, "alone, without a tree");
        c.max_draft = 0;
        run(&f, jobs, &c, 2, "without guesses");
        c = engine_config(320, 4); /* few pages */
        c.max_draft = 16;
        run(&f, jobs, &c, 4, "few pages");
        assert_true(n_right > 50);
        engine_close_model(&f);
        free(jobs);
    }
}

/* An answer in a form, with guesses or without, told of or not: ids and bits are the same. */
static void check_form(const engine_fixture *f, nib_grammar *grammar, bool jumps, size_t text_len) {
    engine_job j = {.n_prompt = 60, .max_tokens = ENGINE_ANSWER, .sampling = NIB_SAMPLER_PARAMS_INIT};
    engine_answer a[4];
    uint64_t n_right = 0;
    j.sampling.temp = 0;
    for (uint32_t i = 0; i < j.n_prompt; i++) j.prompt[i] = (nib_token)(i % 7 * 29 % f->n_vocab);
    for (int i = 0; i < 4; i++) {
        nib_engine_config c = engine_config(512, 2);
        nib_engine_figures figures;
        c.max_draft = i % 2 ? 8 : 0;
        nib_engine *e = engine_start(f, &c);
        nib_request r = engine_request(&j);
        r.grammar = grammar;
        r.jump_ahead = jumps;
        r.logprobs = r.hash_logits = i < 2;
        engine_finish(engine_submit(e, &r), &a[i]);
        engine_assert_settled(e);
        nib_engine_stats(e, &figures);
        n_right += figures.n_accepted;
        engine_end(e);
        assert_int_equal(a[i].text_len, text_len);
        assert_int_equal(a[i].n, a[0].n);
        assert_memory_equal(a[i].ids, a[0].ids, a[0].n * sizeof *a[0].ids);
    }
    assert_memory_equal(a[1].hashes, a[0].hashes, a[0].n * sizeof *a[0].hashes);
    assert_memory_equal(a[1].logprobs, a[0].logprobs, a[0].n * sizeof *a[0].logprobs);
    print_message("with a grammar%s: %u tokens, %u guesses were right\n", jumps ? " and jumps" : "", a[0].n, (unsigned)n_right);
}

static void test_grammar(void **state) {
    (void)state;
    static const char *const patterns[] = {"([0-9]{2}[a-f]){20}", "([a-f] of [0-9]; ){8}", "(name: [a-c], number: 0[0-9]; ){4}",
                                           "[a-c]( of){40}[0-9]"};
    static const size_t lens[] = {60, 64, 84, 122};
    engine_fixture f;
    nib_error err;
    nib_grammar_vocab *vocab;
    nib_grammar *grammar;
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    engine_open_model(&f, "llama");
    config.syntax = NIB_SYNTAX_REGEX;
    assert_int_equal(nib_grammar_vocab_new(&vocab, f.tok, &err), NIB_OK);
    for (int i = 0; i < 8; i++) {
        const char *pattern = patterns[i / 2];
        assert_int_equal(nib_grammar_new(&grammar, pattern, strlen(pattern), vocab, &config, &err), NIB_OK);
        check_form(&f, grammar, i % 2, lens[i / 2]);
        nib_grammar_free(grammar);
    }
    nib_grammar_vocab_free(vocab);
    engine_close_model(&f);
}

/* A guess is compared with the id that was drawn, not with what was jumped over behind it. */
static void test_learns_of_the_drawn(void **state) {
    (void)state;
    static nib_engine e;
    static nib_token ids[] = {3, 4, 5, 6};
    for (nib_token guess = 3; guess <= 6; guess++) {
        nib_engine_choice c = {.ids = ids, .n_ids = 4, .n_ahead = 2, .guess = guess, .guess_rate = {0.5, 0.5}};
        nib_engine_draft_learn(&e, &c, 0, 0);
        assert_int_equal(c.guess_rate[0] > 0.5, guess == 4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_learns_of_the_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
