/* tests/test_cpu_pack.c - packed forms stay what NIB_CPU_PACK_VERSION says: weights that were packed by an earlier build are
 * read back from disk (model/pack_cache.c).
 *
 * When a form was changed on purpose: raise the version, and record the new hashes that this test prints. */
#include "base/mem.h"
#include "cpu/matrix.h"
#include "support/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { RECORDED_VERSION = 1, ROWS = 21, COLS = 768 }; /* a second, partial group; units of 64 and of 256 columns */

static const struct {
    const char *type;
    uint64_t hash;
} recorded[] = {
    {"F32", UINT64_C(0x528418925315c1ff)},
    {"F16", UINT64_C(0x7108a4522edbd16a)},
    {"BF16", UINT64_C(0x7108a4522edbd16a)},
    {"Q4_0", UINT64_C(0x84c497d0185bee26)},
    {"Q4_1", UINT64_C(0x2b62c8badfe2aa56)},
    {"Q5_0", UINT64_C(0x6ce8492482cac18a)},
    {"Q5_1", UINT64_C(0xd68393d967c20687)},
    {"Q8_0", UINT64_C(0xd9101113f4ccc5c7)},
    {"Q2_K", UINT64_C(0x74a487aca5698156)},
    {"Q3_K", UINT64_C(0x9fa23b3fbecc2a65)},
    {"Q4_K", UINT64_C(0x8956277dde4bee7a)},
    {"Q5_K", UINT64_C(0x135cf5038f78ba85)},
    {"Q6_K", UINT64_C(0xc94e2c2123852ba2)},
    {"IQ4_NL", UINT64_C(0x84c497d0185bee26)},
    {"IQ4_XS", UINT64_C(0x70467087da4f645b)},
    {"MXFP4", UINT64_C(0xf456b7baa2e32a58)},
};

/* FNV-1a: independent of the hash that the library uses. */
static uint64_t hash(const uint8_t *p, size_t n) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t packed_hash(const nib_quant_type *type) {
    nib_cpu_matrix m;
    nib_error err;
    uint64_t random = 1;
    size_t n = (size_t)ROWS * COLS;
    assert_int_equal(nib_cpu_matrix_init(&m, type, ROWS, COLS, &err), NIB_OK);
    uint8_t *rows = nib_alloc(n / type->block_size, type->block_bytes);
    m.data = nib_pages_new(nib_cpu_matrix_bytes(&m));
    assert_true(rows && m.data);
    for (size_t i = 0; i < n / type->block_size * type->block_bytes; i++) rows[i] = (uint8_t)blocks_random(&random);
    nib_cpu_matrix_pack(&m, 0, m.n_groups, rows);
    uint64_t h = hash(m.data, nib_cpu_matrix_bytes(&m));
    nib_pages_free(m.data, nib_cpu_matrix_bytes(&m));
    nib_free(rows);
    return h;
}

static void test_recorded(void **state) {
    (void)state;
    int n_changed = 0;
    for (int id = 0; id < NIB_QUANT_COUNT; id++) {
        const nib_quant_type *type = nib_quant_type_at((nib_quant_id)id);
        uint64_t found = packed_hash(type), wanted = 0;
        for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
            if (strcmp(recorded[i].type, type->name) == 0) wanted = recorded[i].hash;
        if (found == wanted) continue;
        n_changed++;
        print_message("    {\"%s\", UINT64_C(0x%016llx)},\n", type->name, (unsigned long long)found);
    }
    if (n_changed) fail_msg("%d packed forms changed: raise NIB_CPU_PACK_VERSION and record the hashes above", n_changed);
    assert_int_equal(NIB_CPU_PACK_VERSION, RECORDED_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
