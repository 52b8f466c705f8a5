/* sample/order.c - sorting of candidate keys and the heap of the k best. */
#include "sample/order.h"

#include <string.h>

#define INSERTION_MAX 96 /* below, the histograms of the radix sort cost more than they save (measured) */

static void sort_insertion(uint64_t *keys, size_t n) {
    for (size_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        size_t j = i;
        for (; j > 0 && keys[j - 1] > key; j--) keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

void nib_sample_order_sort(uint64_t *keys, uint64_t *tmp, size_t n) {
    if (n <= INSERTION_MAX) {
        sort_insertion(keys, n);
        return;
    }
    uint32_t count[8][256];
    memset(count, 0, sizeof count);
    for (size_t i = 0; i < n; i++)
        for (int d = 0; d < 8; d++) count[d][keys[i] >> 8 * d & 255]++;
    uint64_t *from = keys, *to = tmp;
    for (int d = 0; d < 8; d++) {
        if (count[d][from[0] >> 8 * d & 255] == n) continue; /* all have the same digit */
        uint32_t start[256], sum = 0;
        for (int i = 0; i < 256; i++) {
            start[i] = sum;
            sum += count[d][i];
        }
        for (size_t i = 0; i < n; i++) to[start[from[i] >> 8 * d & 255]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) memcpy(keys, from, n * sizeof *keys);
}

/* Restores the heap below item i of the first n: a parent comes after its children. */
static void sift_down(nib_logprob *items, size_t n, size_t i) {
    nib_logprob item = items[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && nib_sample_order_before(items[child], items[child + 1])) child++;
        if (!nib_sample_order_before(item, items[child])) break;
        items[i] = items[child];
    }
    items[i] = item;
}

void nib_sample_order_push(nib_sample_best *best, nib_logprob item) {
    nib_logprob *items = best->items;
    if (best->n < best->k) {
        size_t i = best->n++;
        for (size_t parent; i > 0 && nib_sample_order_before(items[parent = (i - 1) / 2], item); i = parent)
            items[i] = items[parent];
        items[i] = item;
    } else if (best->k && nib_sample_order_before(item, items[0])) {
        items[0] = item;
        sift_down(items, best->n, 0);
    }
}

void nib_sample_order_finish(nib_sample_best *best) {
    for (size_t n = best->n; n > 1; n--) {
        nib_logprob worst = best->items[0];
        best->items[0] = best->items[n - 1];
        best->items[n - 1] = worst;
        sift_down(best->items, n - 1, 0);
    }
}
