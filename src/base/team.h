/* base/team.h - a team of worker threads that run one function together and meet at barriers.
 *
 * Inside a run threads spin at a barrier (0.2-0.4 us between two cores) and fall asleep when it takes long; between runs they sleep.
 * Spinning only pays when every thread has a CPU of its own, so it is off when there are more threads than CPUs. */
#ifndef NIB_BASE_TEAM_H
#define NIB_BASE_TEAM_H

#include "nib.h"

typedef struct nib_team nib_team;
/* Called once on every thread of a run; index 0 is the caller of nib_team_run. */
typedef void (*nib_team_fn)(void *arg, int index, int n_threads);

/* n_threads >= 1, the caller of run included. n_cpus: CPUs that these threads may use (nib_cpu_count). */
nib_status nib_team_new(nib_team **out, int n_threads, int n_cpus, nib_error *err);
void nib_team_free(nib_team *team);
int nib_team_size(const nib_team *team);
/* Lets the next runs use the first n_threads threads only; 1 to the size of the team. */
void nib_team_limit(nib_team *team, int n_threads);
/* From now on the team leaves threads out by itself while other programs take their CPUs (base/crowd.h). */
void nib_team_adapt(nib_team *team);
/* Threads that the next run will use. */
int nib_team_active(const nib_team *team);
/* Runs fn on all threads and returns when all are done. One run at a time per team. */
void nib_team_run(nib_team *team, nib_team_fn fn, void *arg);
/* Inside fn, by thread `index`: waits until every thread of the run is here. What was written before is visible after. */
void nib_team_barrier(nib_team *team, int index);

#endif
