/* Depthwise convolutions of 6 x 6 pixels with filters of 3 x 3 and stride 2, to 3 x 3 results; private
 * to htvm_channels.h. */
#ifndef HTVM_PATCHES_H
#define HTVM_PATCHES_H

#include "htvm_channels.h"
#include "htvm_simd.h"

#if HTVM_SIMD
/* Whether sizes and limits, of rows to end - 1, are those that htvm_patches() computes. */
bool htvm_patches_fit(const htvm_columns_t *what, uint32_t y, uint32_t end);

/* Computes all channels but a last odd one, and returns their number. */
uint32_t htvm_patches(const htvm_columns_t *what);
#endif

#endif
