/* siracusa_neureka_blocks: each core copies rows of its own. */
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

/* Copies the upper or the lower pixels of a row of blocks.  Those from `turn` / 256 of them on come
 * first: rows of a map often begin in the same bank, where all cores would meet. */
static void copy_line(const siracusa_neureka_blocks_t *b, uint8_t *to, const uint8_t *from,
                      uint32_t turn)
{
    const uint32_t bytes = 2u * b->c, pairs = b->ix / 2u;
    const uint32_t count = pairs < b->columns ? pairs : b->columns, later = count * turn >> 8;
    copy_pairs(to + later * SIRACUSA_NEUREKA_BLOCK, from + later * bytes, count - later, bytes);
    copy_pairs(to, from, later, bytes);
    to += count * SIRACUSA_NEUREKA_BLOCK;
    clear_pairs(to, b->columns - count);
    if (count < b->columns && b->ix % 2u != 0) {
        for (uint32_t at = 0; at < b->c; at++) {
            to[at] = from[count * bytes + at];
        }
    }
}

void siracusa_neureka_blocks(const void *args, uint32_t core, uint32_t cores)
{
    const siracusa_neureka_blocks_t *const b = args;
    const uint32_t row_bytes = b->columns * SIRACUSA_NEUREKA_BLOCK, turn = (core << 8) / cores;
    for (uint32_t row = core; row < b->rows; row += cores) {
        uint8_t *const to = (uint8_t *)b->to + row * row_bytes;
        for (uint32_t lower = 0; lower < 2; lower++) {
            const uint32_t y = 2u * row + lower - b->pad_top; /* above the map it is large, too */
            if (y < b->iy) {
                copy_line(b, to + 8u * lower, (const uint8_t *)b->in + y * b->ix * b->c, turn);
            } else {
                clear_pairs(to + 8u * lower, b->columns);
            }
        }
    }
}
