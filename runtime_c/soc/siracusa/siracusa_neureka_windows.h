/* Windows of a map beside each other, which N-EUREKA reads as the pixels of a 1x1 convolution; and
 * blocks of 2x2 pixels of an image, which it reads as those of a 3x3 convolution. */
#ifndef SIRACUSA_NEUREKA_WINDOWS_H
#define SIRACUSA_NEUREKA_WINDOWS_H

#include <stdint.h>

/* The windows of `rows` x `columns` outputs, of fy x fx pixels of `c` bytes, are copied from `in`, a
 * map of `iy` rows of `ix` pixels, to `to`, one every `pitch` bytes; what is outside of the map is 0.
 * Of a row up to 3 bytes behind the map are read, and of a window up to 3 bytes, inside its pitch,
 * are written behind its end. */
typedef struct {
    const void *in;
    void *to;
    uint32_t rows, columns;
    uint32_t iy, ix, c;
    uint32_t fy, fx;
    uint32_t stride_y, stride_x;
    uint32_t pad_top, pad_left;
    uint32_t pitch;
} siracusa_neureka_windows_t;

/* Kernel (see cluster.h). */
void siracusa_neureka_windows(const void *args, uint32_t core, uint32_t cores);

/* Bytes from block to block: an odd number of words, so that the cores do not write to the same bank at
 * a time. */
#define SIRACUSA_NEUREKA_BLOCK 20u

/* `rows` x `columns` blocks are copied from `in`, a map of `iy` rows of `ix` pixels of 3 or 4 bytes, the
 * first row of blocks beginning `pad_top` rows before it.  The upper two pixels of a block begin its
 * first two words, the lower two the next ones; pixels outside of the map are 0, and what else is in
 * these words is undefined.  Up to 2 bytes behind the map are read. */
typedef struct {
    const void *in;
    void *to;
    uint32_t rows, columns;
    uint32_t iy, ix, c;
    uint32_t pad_top;
} siracusa_neureka_blocks_t;

/* Kernel (see cluster.h). */
void siracusa_neureka_blocks(const void *args, uint32_t core, uint32_t cores);

#endif
