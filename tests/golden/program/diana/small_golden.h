/* small: one stored sample and what the network must make of it. */
#ifndef SMALL_GOLDEN_H
#define SMALL_GOLDEN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t code;       /* what small_run returned; nothing was compared unless 0 */
    uint32_t elements;  /* of all outputs */
    uint32_t different; /* of them */
} small_golden_t;

/* Runs the network on the sample and compares its outputs element by element. */
small_golden_t small_golden_check(void);

#ifdef __cplusplus
}
#endif

#endif
