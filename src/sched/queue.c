/* sched/queue.c - who comes next: requests in order of priority, then of what their owner has had, then of arrival. */
#include "sched/queue.h"

#include "base/mem.h"
#include "base/status.h"

#include <assert.h>

nib_status nib_sched_queue_init(nib_sched_queue *queue, uint32_t capacity, nib_error *err) {
    *queue = (nib_sched_queue){.capacity = capacity, .accounts = nib_calloc(capacity, sizeof *queue->accounts)};
    queue->waiting.next = queue->waiting.prev = &queue->waiting;
    return queue->accounts ? NIB_OK : nib_fail_nomem(err, (uint64_t)capacity * sizeof *queue->accounts, "the queue");
}

void nib_sched_queue_fini(nib_sched_queue *queue) {
    nib_free(queue->accounts);
    queue->accounts = NULL;
}

/* Accounts that nobody uses give their place to the next new one, so places of others never move. */
void nib_sched_queue_enter(nib_sched_queue *queue, nib_sched_item *item) {
    uint64_t least = UINT64_MAX;
    uint32_t place = queue->n_accounts;
    for (uint32_t i = 0; i < queue->n_accounts; i++) {
        nib_sched_account *a = &queue->accounts[i];
        if (a->n_items == 0) {
            place = i;
        } else if (a->owner == item->owner) {
            item->account = i;
            a->n_items++;
            return;
        } else if (a->served < least) {
            least = a->served;
        }
    }
    assert(place < queue->capacity);
    if (place == queue->n_accounts) queue->n_accounts++;
    queue->accounts[place] = (nib_sched_account){item->owner, least == UINT64_MAX ? 0 : least, 1};
    item->account = place;
}

void nib_sched_queue_leave(nib_sched_queue *queue, nib_sched_item *item) {
    queue->accounts[item->account].n_items--;
}

void nib_sched_queue_charge(nib_sched_queue *queue, const nib_sched_item *item, uint64_t n) {
    queue->accounts[item->account].served += n;
}

void nib_sched_queue_push(nib_sched_queue *queue, nib_sched_item *item) {
    item->next = &queue->waiting;
    item->prev = queue->waiting.prev;
    item->prev->next = item->next->prev = item;
    queue->n_waiting++;
}

void nib_sched_queue_remove(nib_sched_queue *queue, nib_sched_item *item) {
    item->prev->next = item->next;
    item->next->prev = item->prev;
    item->next = item->prev = NULL;
    queue->n_waiting--;
}

bool nib_sched_queue_is_senior(const nib_sched_item *a, const nib_sched_item *b) {
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->arrival < b->arrival;
}

bool nib_sched_queue_is_before(const nib_sched_queue *queue, const nib_sched_item *a, const nib_sched_item *b) {
    uint64_t served_a = queue->accounts[a->account].served, served_b = queue->accounts[b->account].served;
    if (a->priority == b->priority && served_a != served_b) return served_a < served_b;
    return nib_sched_queue_is_senior(a, b);
}

nib_sched_item *nib_sched_queue_next(const nib_sched_queue *queue) {
    nib_sched_item *best = NULL;
    for (nib_sched_item *i = queue->waiting.next; i != &queue->waiting; i = i->next)
        if (!best || nib_sched_queue_is_before(queue, i, best)) best = i;
    return best;
}
