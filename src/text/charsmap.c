/* text/charsmap.c - the double array that SentencePiece precompiles: the blob is the array's length in bytes (32 bits,
 * little-endian), its units, and the replacement texts.
 *
 * A unit holds in bits 0-7 and 31 the byte that leads to it (bit 31: it is a value, bits 0-30 the place of a
 * replacement), in bit 8 whether a string ends there, in bits 10-30 the distance to its children, times 256 when bit 9
 * is set. The child along byte c of the unit at p with distance d is at p ^ d ^ c; along byte 0 it is the value. */
#include "text/charsmap.h"

#include "base/mem.h"
#include "base/status.h"
#include "text/utf8.h"

#include <string.h>

#define KEY "tokenizer.ggml.precompiled_charsmap"

static uint32_t load_u32(const char *p) {
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

nib_status nib_text_charsmap_init(nib_text_charsmap *map, nib_str blob, nib_error *err) {
    *map = (nib_text_charsmap){0};
    if (!blob.len) return NIB_OK;
    if (blob.len < 4 || blob.len > UINT32_MAX)
        return nib_fail(err, NIB_E_FORMAT, KEY " has %zu bytes, expected at least 4 and less than 4 GiB", blob.len);
    uint32_t n_bytes = load_u32(blob.ptr);
    if (n_bytes > blob.len - 4 || n_bytes % 4)
        return nib_fail(err, NIB_E_FORMAT, KEY " says that its array has %u bytes, expected a multiple of 4 up to %zu",
                        n_bytes, blob.len - 4);
    map->n_units = n_bytes / 4;
    map->texts_len = (uint32_t)(blob.len - 4 - n_bytes);
    map->units = nib_alloc(map->n_units, sizeof *map->units);
    map->texts = nib_alloc(map->texts_len, 1);
    if (!map->units || !map->texts) {
        nib_text_charsmap_free(map);
        return nib_fail_nomem(err, blob.len, KEY);
    }
    for (uint32_t i = 0; i < map->n_units; i++) map->units[i] = load_u32(blob.ptr + 4 + 4 * (size_t)i);
    if (map->texts_len) memcpy(map->texts, blob.ptr + 4 + n_bytes, map->texts_len);
    return NIB_OK;
}

void nib_text_charsmap_free(nib_text_charsmap *map) {
    nib_free(map->units);
    nib_free(map->texts);
    *map = (nib_text_charsmap){0};
}

static uint32_t distance(uint32_t unit) {
    return unit >> 10 << (unit >> 6 & 8);
}

/* The length of the longest rule at the start of text, 0 for none; *place is that of its replacement. */
static size_t longest(const nib_text_charsmap *map, nib_str text, uint32_t *place) {
    size_t len = 0;
    if (!map->n_units) return 0;
    uint32_t p = distance(map->units[0]);
    for (size_t i = 0; i < text.len && text.ptr[i]; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        p ^= c;
        if (p >= map->n_units) break;
        uint32_t unit = map->units[p];
        if ((unit & 0x800000FFu) != c) break;
        p ^= distance(unit);
        if (!(unit >> 8 & 1)) continue;
        if (p >= map->n_units) break;
        *place = map->units[p] & 0x7FFFFFFFu;
        len = i + 1;
    }
    return len;
}

void nib_text_charsmap_next(const nib_text_charsmap *map, nib_str text, size_t *from, nib_str *to) {
    uint32_t place = 0, cp;
    *from = longest(map, text, &place);
    if (*from && place < map->texts_len) {
        const char *p = map->texts + place, *end = memchr(p, 0, map->texts_len - place);
        *to = (nib_str){p, end ? (size_t)(end - p) : map->texts_len - place};
        return;
    }
    *from = nib_text_utf8_get(text.ptr, text.len, &cp);
    *to = (nib_str){text.ptr, *from};
    if (*from) return;
    *from = 1;
    *to = (nib_str){NIB_TEXT_REPLACEMENT, sizeof NIB_TEXT_REPLACEMENT - 1};
}
