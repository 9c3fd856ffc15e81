/* The core, told to whoever watches; see execute.c. */
#define HTVM_ISS_WATCHED
#include "execute.c"
