/* Depthwise convolutions with filters of 3 x 3 and stride 2, two channels at a time; private to
 * htvm_channels.h. */
#ifndef HTVM_PAIRS_H
#define HTVM_PAIRS_H

#include "htvm_channels.h"
#include "htvm_simd.h"

#if HTVM_SIMD
/* Whether sizes, borders and limits, of rows to end - 1, are those that htvm_pairs() computes. */
bool htvm_pairs_fit(const htvm_columns_t *what, uint32_t end);

/* Computes rows y to end - 1 of all channels but a last odd one, and returns their number. */
uint32_t htvm_pairs(const htvm_columns_t *what, uint32_t y, uint32_t end);
#endif

#endif
