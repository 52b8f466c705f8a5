/* base/hash.h - a 64-bit checksum of bytes at the speed of memory, to find damage; not a defence against forgery.
 *
 * A change within one 64-bit word always changes the result. The same on every machine of one byte order. */
#ifndef NIB_BASE_HASH_H
#define NIB_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* To go on from one piece to the next, pass the result as the next seed. */
uint64_t nib_hash64(uint64_t seed, const void *data, size_t n);

#endif
