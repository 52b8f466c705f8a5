/* server/metrics.h - figures for Prometheus: counted on the loop, told by GET /metrics in the text format. */
#ifndef NIB_SERVER_METRICS_H
#define NIB_SERVER_METRICS_H

#include "base/buf.h"

#define NIB_SERVER_MAX_BUCKETS 24
#define NIB_SERVER_MAX_LABELS 24

typedef struct nib_server_answer nib_server_answer;
typedef struct nib_server_choice nib_server_choice;

typedef struct nib_server_histogram {
    uint64_t counts[NIB_SERVER_MAX_BUCKETS]; /* by the first bound that a value does not pass; the last: beyond all */
    double sum;
} nib_server_histogram;

/* Counts by a word; what does not fit any more is counted as the last one. */
typedef struct nib_server_tally {
    char labels[NIB_SERVER_MAX_LABELS][40];
    uint64_t counts[NIB_SERVER_MAX_LABELS];
    size_t n;
} nib_server_tally;

typedef struct nib_server_metrics {
#define FIGURE(type, name, value, help)
#define LABELLED(type, name, label, help)
#define VALUE(label, value)
#define HISTOGRAM(member, name, bounds, help) nib_server_histogram member;
#define TALLY(member, name, label, help) nib_server_tally member;
#include "metrics.def"
#undef FIGURE
#undef LABELLED
#undef VALUE
#undef HISTOGRAM
#undef TALLY
} nib_server_metrics;

/* One more of a word. */
void nib_server_metrics_count(nib_server_tally *tally, const char *label);
/* A token of a choice came now. */
void nib_server_metrics_token(nib_server_metrics *metrics, nib_server_choice *choice);
/* An answer that is over, in whatever way. */
void nib_server_metrics_answer(nib_server_metrics *metrics, const nib_server_answer *answer);
void nib_server_metrics_http(nib_server_metrics *metrics, int status);

#endif
