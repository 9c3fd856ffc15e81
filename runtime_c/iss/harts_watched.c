/* The harts, told to whoever watches; see harts_watch.h. */
#define HTVM_ISS_WATCHED
#include "harts_pipeline.c"
#include "harts_scoreboard.c"
