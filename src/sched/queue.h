/* sched/queue.h - who comes next: requests in order of priority, then of what their owner has had, then of arrival.
 *
 * An owner (an API key, a user) has an account of tokens that were computed for it while it had requests. A new account
 * begins with as much as the poorest there is, so nobody saves up while idle. Accounts are kept in an array made once; the
 * items are the caller's. One owner thread. */
#ifndef NIB_SCHED_QUEUE_H
#define NIB_SCHED_QUEUE_H

#include "nib.h"

typedef struct nib_sched_item {
    int32_t priority; /* lower first */
    uint64_t owner, arrival;
    uint32_t account;
    struct nib_sched_item *next, *prev; /* while it waits */
} nib_sched_item;

typedef struct nib_sched_account {
    uint64_t owner, served;
    uint32_t n_items;
} nib_sched_account;

typedef struct nib_sched_queue {
    nib_sched_account *accounts;
    uint32_t n_accounts, capacity;
    uint32_t n_waiting;
    nib_sched_item waiting; /* a ring, of which this is no item */
} nib_sched_queue;

/* capacity: most items at a time. */
nib_status nib_sched_queue_init(nib_sched_queue *queue, uint32_t capacity, nib_error *err);
void nib_sched_queue_fini(nib_sched_queue *queue);

/* An item comes to be known, waiting or not, and is forgotten. priority, owner and arrival are set before. */
void nib_sched_queue_enter(nib_sched_queue *queue, nib_sched_item *item);
void nib_sched_queue_leave(nib_sched_queue *queue, nib_sched_item *item);
/* n tokens were computed for its owner. */
void nib_sched_queue_charge(nib_sched_queue *queue, const nib_sched_item *item, uint64_t n);

void nib_sched_queue_push(nib_sched_queue *queue, nib_sched_item *item);
void nib_sched_queue_remove(nib_sched_queue *queue, nib_sched_item *item);
/* Of those that wait, the one that is next; NULL: none. */
nib_sched_item *nib_sched_queue_next(const nib_sched_queue *queue);
/* Is a served before b? */
bool nib_sched_queue_is_before(const nib_sched_queue *queue, const nib_sched_item *a, const nib_sched_item *b);
/* Does a keep its place when a and b cannot both? By priority and arrival, whatever their owners have had. */
bool nib_sched_queue_is_senior(const nib_sched_item *a, const nib_sched_item *b);

#endif
