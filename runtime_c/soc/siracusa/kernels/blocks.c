/* siracusa_neureka_blocks: each core copies lines of its own, and parts of lines. */
#include "cluster_share.h"
#include "htvm_simd.h"
#include "siracusa_neureka_windows.h"

/* Copies pairs of pixels, `bytes` each, in two words. */
static void copy_pairs(uint8_t *to, const uint8_t *from, uint32_t count, uint32_t bytes)
{
#if HTVM_SIMD
    uint32_t a, b;
    if (count != 0) {
        __asm__ volatile(HTVM_LOOP
                         ".insn r 0x2b, 4, 0, x10, %[count], x0\n" /* cv.count 0 */
                         "3: lw %[b], 4(%[from])\ncv.lw %[a], (%[from]), %[bytes]\n"
                         "sw %[b], 4(%[to])\ncv.sw %[a], (%[to]), %[block]\n"
                         "4:\n.option pop\n"
                         : [a] "=&r"(a), [b] "=&r"(b), [from] "+&r"(from), [to] "+&r"(to)
                         : [count] "r"(count), [bytes] "r"(bytes),
                           [block] "r"(SIRACUSA_NEUREKA_BLOCK)
                         : "memory");
    }
#else
    for (; count != 0; count--, to += SIRACUSA_NEUREKA_BLOCK, from += bytes) {
        htvm_store4(to, htvm_load4(from));
        htvm_store4(to + 4, htvm_load4(from + 4));
    }
#endif
}

static void clear_pairs(uint8_t *to, uint32_t count)
{
    for (; count != 0; count--, to += SIRACUSA_NEUREKA_BLOCK) {
        htvm_store4(to, 0);
        htvm_store4(to + 4, 0);
    }
}

/* Copies the upper or the lower pixels of a row of blocks, from block `begin` to `end` - 1. */
static void copy_line(const siracusa_neureka_blocks_t *b, uint8_t *to, const uint8_t *from,
                      uint32_t begin, uint32_t end)
{
    const uint32_t bytes = 2u * b->c, pairs = b->ix / 2u;
    const uint32_t there = pairs < end ? pairs : end, count = begin < there ? there - begin : 0;
    copy_pairs(to + begin * SIRACUSA_NEUREKA_BLOCK, from + begin * bytes, count, bytes);
    begin += count;
    clear_pairs(to + begin * SIRACUSA_NEUREKA_BLOCK, end - begin);
    if (begin == pairs && pairs < end && b->ix % 2u != 0) {
        for (uint32_t at = 0; at < b->c; at++) {
            to[pairs * SIRACUSA_NEUREKA_BLOCK + at] = from[pairs * bytes + at];
        }
    }
}

/* Quarters of lines are shared: there are few lines.  Most cores begin at different columns, so that
 * they do not meet in the banks in which the map's rows begin. */
void siracusa_neureka_blocks(const void *args, uint32_t core, uint32_t cores)
{
    const siracusa_neureka_blocks_t *const b = args;
    const uint32_t row_bytes = b->columns * SIRACUSA_NEUREKA_BLOCK;
    const cluster_share_t quarters = cluster_share(8u * b->rows, core, cores);
    for (uint32_t at = quarters.begin, next; at < quarters.end; at = next) {
        const uint32_t row = at / 8u, lower = at / 4u % 2u;
        next = (at | 3u) + 1u < quarters.end ? (at | 3u) + 1u : quarters.end;
        const uint32_t begin = at % 4u * b->columns / 4u;
        const uint32_t end = (next - (at & ~3u)) * b->columns / 4u;
        uint8_t *const to = (uint8_t *)b->to + row * row_bytes + 8u * lower;
        const uint32_t y = 2u * row + lower - b->pad_top; /* above the map it is large, too */
        if (y < b->iy) {
            copy_line(b, to, (const uint8_t *)b->in + y * b->ix * b->c, begin, end);
        } else {
            clear_pairs(to + begin * SIRACUSA_NEUREKA_BLOCK, end - begin);
        }
    }
}
