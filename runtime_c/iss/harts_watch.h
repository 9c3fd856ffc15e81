/* What harts_scoreboard.c and harts_pipeline.c tell whoever watches; with the names of their variables.
 *
 * Both are compiled twice, as execute.c is: harts_watched.c includes them for runs that are watched. */
#ifndef HTVM_ISS_HARTS_WATCH_H
#define HTVM_ISS_HARTS_WATCH_H

#ifdef HTVM_ISS_WATCHED
#include "watch.h"

#define RUN htvm_harts_run_watched
#define ON_JUMP(pc) htvm_iss_watch_jump(all->iss->watch, hart->number, d, (pc), target, cycle)
#define ON_STORE(addr, width, now)                                                            \
    htvm_iss_watch_store(all->iss->watch, hart->number, address_of(ram, d), (addr), (width), \
                         (now))
#else
#define RUN htvm_harts_run
#define ON_JUMP(pc) ((void)0)
#define ON_STORE(addr, width, now) ((void)0)
#endif

#endif
