/* siracusa_neureka_windows: windows with all columns inside of the map are copied in words, others row
 * by row. */
#include "htvm_bytes.h"
#include "htvm_simd.h"
#include "siracusa_neureka_windows.h"

/* The taps of an output's window along one side that are inside the map. */
typedef struct {
    uint32_t tap, at, count; /* the first of them, where it is in the map, and how many there are */
} side_t;

static side_t side_of(uint32_t start, uint32_t pad, uint32_t taps, uint32_t size)
{
    side_t side = {start < pad ? pad - start : 0, start < pad ? 0 : start - pad, 0};
    if (side.tap < taps && side.at < size) {
        const uint32_t left = taps - side.tap, there = size - side.at;
        side.count = left < there ? left : there;
    }
    return side;
}

/* Copies windows of `what`, all of whose bytes exist.  The numbers are in registers: in memory, all
 * cores would read them from the same bank. */
static void copy_whole(const htvm_windows_t *what, uint8_t *to, const uint8_t *from, uint32_t count)
{
#if HTVM_SIMD
    if (what->words % 4u == 0) {
        const uint32_t rows = what->rows, blocks = what->words / 4u;
        const uint32_t in_next = what->in_row - 16u * blocks;
        const uint32_t out_next = what->out_row - 16u * blocks;
        const uint32_t in_window = what->in_window - rows * what->in_row;
        const uint32_t out_window = what->out_window - rows * what->out_row;
        uint32_t a, b, c, d;
        for (; count != 0; count--, to += out_window, from += in_window) {
            __asm__ volatile(HTVM_LOOPS
                             ".insn r 0x2b, 4, 0, x11, %[rows], x0\n"     /* cv.count 1 */
                             "2: .insn r 0x2b, 4, 0, x10, %[blocks], x0\n" /* cv.count 0 */
                             "3: cv.lw %[a], (%[from]), 4\ncv.lw %[b], (%[from]), 4\n"
                             "cv.lw %[c], (%[from]), 4\ncv.lw %[d], (%[from]), 4\n"
                             "cv.sw %[a], (%[to]), 4\ncv.sw %[b], (%[to]), 4\n"
                             "cv.sw %[c], (%[to]), 4\ncv.sw %[d], (%[to]), 4\n"
                             "4: add %[from], %[from], %[in_next]\nadd %[to], %[to], %[out_next]\n"
                             "5:\n.option pop\n"
                             : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d),
                               [from] "+&r"(from), [to] "+&r"(to)
                             : [rows] "r"(rows), [blocks] "r"(blocks), [in_next] "r"(in_next),
                               [out_next] "r"(out_next)
                             : "memory");
        }
        return;
    }
#endif
    htvm_copy_windows(what, to, from, count);
}

/* Clears the first bytes of each row. */
static void clear(uint8_t *to, uint32_t rows, uint32_t bytes, uint32_t pitch)
{
    if (bytes == 0) {
        return;
    }
    if (bytes % 4u == 0) {
        for (; rows != 0; rows--, to += pitch) {
            htvm_fill_words(to, 0, bytes / 4u);
        }
        return;
    }
    for (uint32_t at = 0; at < bytes; at++) {
        uint8_t *byte = to + at;
        for (uint32_t i = 0; i < rows; i++, byte += pitch) {
            *byte = 0;
        }
    }
}

/* Clears bytes, none behind them. */
static void clear_exactly(uint8_t *to, uint32_t bytes)
{
    htvm_fill_words(to, 0, bytes / 4u);
    for (uint32_t at = bytes & ~3u; at < bytes; at++) {
        to[at] = 0;
    }
}

static void copy_bytes(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at++) {
        to[at] = from[at];
    }
}

/* Clears the rows outside of the map of windows whose columns are inside. */
static void clear_outside(const siracusa_neureka_windows_t *w, side_t y, uint8_t *to, uint32_t count)
{
    const uint32_t row = w->fx * w->c, end = w->fy * row;
    const uint32_t above = y.count == 0 ? end : y.tap * row;
    const uint32_t below = y.count == 0 ? end : above + y.count * row;
    for (; count != 0; count--, to += w->pitch) {
        clear_exactly(to, above);
        clear_exactly(to + below, end - below);
    }
}

/* Copies the part of a window that is inside; the rest becomes 0.  Beside a row there are others,
 * which are read, too, and cleared; not beside the first and the last row of the map. */
static void copy_part(const siracusa_neureka_windows_t *w, const htvm_windows_t *whole, side_t y,
                      side_t x, uint8_t *to)
{
    const uint32_t row = w->fx * w->c, in_row = w->ix * w->c;
    const uint32_t before = x.tap * w->c, inside = x.count * w->c, after = row - before - inside;
    const uint8_t *const from = (const uint8_t *)w->in + y.at * in_row + x.at * w->c;
    uint8_t *const rows = to + y.tap * row;
    const uint32_t end = w->fy * row;
    if (y.count == 0 || x.count == 0) {
        clear_exactly(to, end);
        return;
    }
    const uint32_t first = y.at == 0 && before != 0 ? 1u : 0;
    const uint32_t last = y.at + y.count == w->iy && after != 0 ? y.count - 1u : y.count;
    clear_exactly(to, y.tap * row);
    if (first != 0) {
        copy_bytes(rows + before, from, inside);
    }
    if (last > first) {
        htvm_windows_t some = *whole;
        some.rows = last - first;
        copy_whole(&some, rows + first * row, from + first * in_row - before, 1);
    }
    if (last < y.count && last >= first) {
        copy_bytes(rows + last * row + before, from + last * in_row, inside);
    }
    clear(rows, y.count, before, row);
    clear(rows + before + inside, y.count, after, row);
    clear_exactly(rows + y.count * row, end - (y.tap + y.count) * row);
}

void siracusa_neureka_windows(const void *args, uint32_t core, uint32_t cores)
{
    const siracusa_neureka_windows_t w = *(const siracusa_neureka_windows_t *)args;
    const uint32_t pixels = w.rows * w.columns, row = w.fx * w.c;
    /* An odd number, as that of the words of a window should be: then no two cores write to the same
     * bank at a time. */
    const uint32_t each = ((pixels + cores - 1u) / cores) | 1u, begin = core * each;
    uint32_t left = begin >= pixels ? 0 : pixels - begin < each ? pixels - begin : each;
    uint32_t y = begin / w.columns, x = begin - y * w.columns;
    uint8_t *to = (uint8_t *)w.to + begin * w.pitch;
    htvm_windows_t some = {
        w.fy, (row + 3u) / 4u, w.ix * w.c, row, w.stride_x * w.c, w.pitch,
    };
    /* The columns whose windows are inside: from first to end - 1. */
    const uint32_t first = (w.pad_left + w.stride_x - 1u) / w.stride_x;
    const uint32_t last =
        w.ix + w.pad_left < w.fx ? 0 : (w.ix + w.pad_left - w.fx) / w.stride_x + 1u;
    const uint32_t end = last < w.columns ? last : w.columns;
    while (left != 0) {
        const side_t down = side_of(y * w.stride_y, w.pad_top, w.fy, w.iy);
        uint32_t count = 1;
        if (x >= first && x < end) {
            count = end - x < left ? end - x : left;
            const uint32_t column = x * w.stride_x - w.pad_left;
            some.rows = down.count;
            if (down.count != 0) {
                copy_whole(&some, to + down.tap * row,
                           (const uint8_t *)w.in + (down.at * w.ix + column) * w.c, count);
            }
            if (down.count != w.fy) {
                clear_outside(&w, down, to, count);
            }
        } else {
            copy_part(&w, &some, down, side_of(x * w.stride_x, w.pad_left, w.fx, w.ix), to);
        }
        to += count * w.pitch;
        left -= count;
        x += count;
        if (x == w.columns) {
            x = 0;
            y++;
        }
    }
}
