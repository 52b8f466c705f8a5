/* tests/support/dequant_main.c - dequant TYPE: raw blocks on stdin, little-endian float32 on stdout.
 *
 * For tests/quant_oracle.py. Exit status 0; 1 when stdin is not a whole number of blocks; 2 for an unknown type. */
#include "quant/type.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    const nib_quant_type *type = argc == 2 ? nib_quant_type_by_name(argv[1]) : NULL;
    if (!type) {
        fprintf(stderr, "usage: dequant TYPE < blocks > floats\n");
        return 2;
    }
    void *block = malloc(type->block_bytes); /* of the exact size, so that a sanitizer sees any read beyond it */
    float *out = malloc(type->block_size * sizeof *out);
    size_t got = 0;
    if (block && out) {
        while ((got = fread(block, 1, type->block_bytes, stdin)) == type->block_bytes) {
            type->dequantize(block, out, type->block_size);
            fwrite(out, sizeof *out, type->block_size, stdout);
        }
    }
    free(block);
    free(out);
    return got == 0 && fflush(stdout) == 0 ? 0 : 1;
}
