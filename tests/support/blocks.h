/* tests/support/blocks.h - random numbers and random weights of any tensor type, the same on every machine. */
#ifndef NIB_TESTS_SUPPORT_BLOCKS_H
#define NIB_TESTS_SUPPORT_BLOCKS_H

#include "quant/type.h"

/* SplitMix64: any start value will do. */
uint64_t blocks_random(uint64_t *state);
float blocks_uniform(uint64_t *state); /* [0, 1) */
float blocks_normal(uint64_t *state);  /* mean 0, standard deviation 1 */

/* n weights (a multiple of the block) with mean about 0 and standard deviation about sd. Codes use their whole range;
 * scales differ from block to block and have either sign. */
void blocks_fill(const nib_quant_type *type, void *blocks, size_t n, float sd, uint64_t *state);

#endif
