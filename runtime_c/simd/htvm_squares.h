/* Depthwise convolutions of 3 x 3 pixels with filters of 3 x 3, stride 1 and a border of 1; private to
 * htvm_channels.h. */
#ifndef HTVM_SQUARES_H
#define HTVM_SQUARES_H

#include "htvm_channels.h"
#include "htvm_simd.h"

#if HTVM_SIMD
/* Whether sizes and limits, of rows to end - 1, are those that htvm_squares() computes. */
bool htvm_squares_fit(const htvm_columns_t *what, uint32_t y, uint32_t end);

/* Computes all channels but a last odd one, and returns their number. */
uint32_t htvm_squares(const htvm_columns_t *what);
#endif

#endif
