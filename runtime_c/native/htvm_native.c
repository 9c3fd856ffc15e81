/* Convolutions of the host platform: pixels side by side in a vector, four channels in a word.
 *
 * Input and weights are first arranged in words of four channels.  A block of sums has four or eight
 * output channels by some vectors of pixels; a step multiplies a word of each channel with the words
 * of all pixels.  With a stride of s, each s-th column lies in a plane of its own, likewise rows, so
 * that the words of neighbouring pixels are always neighbours.  A vector may span several rows; the
 * sums of the few places between them, where no pixel is, are not stored.
 */
#include "htvm_native.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "htvm_native_vectors.h"

#define LIFT 128
#define MOST_CHANNELS 8
#define SPAN ((int32_t)(HTVM_VECTORS * HTVM_LANES)) /* pixels of the largest block */

/* How the input lies in words: [four channels][phase of rows][phase of columns][height][width]. */
typedef struct {
    int32_t fours, phases_y, phases_x, height, width;
    ptrdiff_t plane; /* words of four channels: those of all phases */
} arranged_t;

/* One program has one thread. */
static struct {
    void *at;
    size_t bytes;
} scratch[4];

const char *htvm_native_kind(void) { return HTVM_NATIVE_KIND; }

static void *scratch_of(size_t number, size_t bytes)
{
    if (scratch[number].bytes < bytes) {
        free(scratch[number].at);
        bytes = (bytes + 63u) / 64u * 64u;
        scratch[number].at = aligned_alloc(64, bytes);
        scratch[number].bytes = bytes;
        if (scratch[number].at == NULL) {
            (void)fprintf(stderr, "no memory for %zu bytes of a convolution's operands\n", bytes);
            exit(1);
        }
    }
    return scratch[number].at;
}

int32_t *htvm_native_sums(uint32_t count) { return scratch_of(3, (size_t)count * sizeof(int32_t)); }

static int32_t quotient_up(int32_t a, int32_t b) { return (a + b - 1) / b; }

static arranged_t shape_of(const htvm_native_conv_t *conv)
{
    arranged_t shape = {.fours = quotient_up(conv->channels, 4),
                        .phases_y = conv->fy > 1 ? conv->stride_y : 1,
                        .phases_x = conv->fx > 1 ? conv->stride_x : 1,
                        .height = quotient_up(conv->height, conv->stride_y),
                        .width = quotient_up(conv->width, conv->stride_x)};
    shape.plane = (ptrdiff_t)shape.phases_y * shape.phases_x * shape.height * shape.width;
    return shape;
}

/* Writes `count` words of the bytes of four rows, each `step` apart. */
HTVM_NATIVE_INLINE void interleave(uint32_t *restrict to, const int8_t *const row[4], int32_t step,
                                   int32_t count, uint32_t lift)
{
    const int8_t *const a = row[0], *const b = row[1], *const c = row[2], *const d = row[3];
    for (int32_t i = 0; i < count; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * step;
        const uint32_t low = (uint32_t)(uint8_t)a[at] | (uint32_t)(uint8_t)b[at] << 8;
        const uint32_t high = (uint32_t)(uint8_t)c[at] | (uint32_t)(uint8_t)d[at] << 8;
        to[i] = (low | high << 16) ^ lift;
    }
}

/* Arranges the phases of a row of four channels. */
static void arrange_row(uint32_t *to, const int8_t *const row[4], const htvm_native_conv_t *conv,
                        const arranged_t *x)
{
    const uint32_t lift = HTVM_LIFTED ? 0x80808080u : 0u;
    for (int32_t phase = 0; phase < x->phases_x && phase < conv->width; phase++) {
        const int8_t *const from[4] = {row[0] + phase, row[1] + phase, row[2] + phase,
                                       row[3] + phase};
        uint32_t *const place = to + (ptrdiff_t)phase * x->height * x->width;
        const int32_t count = quotient_up(conv->width - phase, conv->stride_x);
        if (conv->stride_x == 1) {
            interleave(place, from, 1, count, lift);
        } else if (conv->stride_x == 2) {
            interleave(place, from, 2, count, lift);
        } else {
            interleave(place, from, conv->stride_x, count, lift);
        }
    }
}

/* Returns the input in words; missing channels repeat others, their weights are zeros. */
static const uint32_t *arrange(const int8_t *in, const htvm_native_conv_t *conv,
                               const arranged_t *x)
{
    const ptrdiff_t map = (ptrdiff_t)conv->height * conv->width;
    const size_t words = (size_t)(x->fours * x->plane) + (size_t)SPAN;
    uint32_t *const to = scratch_of(0, words * sizeof *to);
    /* What is read but belongs to no pixel is computed with, and dropped. */
    if (x->height * conv->stride_y != conv->height || x->width * conv->stride_x != conv->width) {
        memset(to, 0, words * sizeof *to);
    } else {
        memset(to + words - SPAN, 0, (size_t)SPAN * sizeof *to);
    }
    for (int32_t four = 0; four < x->fours; four++) {
        const int8_t *channel[4];
        for (int32_t i = 0; i < 4; i++) {
            const int32_t c = four * 4 + i;
            channel[i] = in + map * (c < conv->channels ? c : four * 4);
        }
        for (int32_t y = 0; y < conv->height; y++) {
            if (y % conv->stride_y >= x->phases_y) {
                continue;
            }
            const ptrdiff_t at = (ptrdiff_t)y * conv->width;
            const int8_t *const row[4] = {channel[0] + at, channel[1] + at, channel[2] + at,
                                          channel[3] + at};
            const ptrdiff_t phase = (ptrdiff_t)(y % conv->stride_y) * x->phases_x * x->height;
            arrange_row(to + four * x->plane + (phase + y / conv->stride_y) * x->width, row, conv,
                        x);
        }
    }
    return to;
}

/* Arranges the weights of `count` filters as [four channels][fy][fx][filter], and returns in
 * starts[] what their sums begin with. */
HTVM_NATIVE_INLINE void arrange_filters(uint32_t *restrict to, const int8_t *weight,
                                        const int32_t *bias, int32_t *starts, int32_t channels,
                                        int32_t taps, int32_t count)
{
    const ptrdiff_t size = (ptrdiff_t)channels * taps;
    for (int32_t k = 0; k < count; k++) {
        const int8_t *const own = weight + k * size;
        uint32_t total = 0;
        for (ptrdiff_t i = 0; HTVM_LIFTED && i < size; i++) {
            total += (uint32_t)own[i];
        }
        starts[k] = (int32_t)((bias == NULL ? 0u : (uint32_t)bias[k]) - total * LIFT);
        for (int32_t c = 0; c < channels; c += 4) {
            const int8_t *const four = own + (ptrdiff_t)c * taps;
            const int32_t there = channels - c < 4 ? channels - c : 4;
            for (int32_t tap = 0; tap < taps; tap++) {
                uint32_t word = 0;
                for (int32_t i = 0; i < there; i++) {
                    word |= (uint32_t)(uint8_t)four[i * taps + tap] << (8 * i);
                }
                to[((ptrdiff_t)(c / 4) * taps + tap) * count + k] = word;
            }
        }
    }
}

/* Writes sums of `count` channels by `vectors` vectors of pixels, channels SPAN apart. */
HTVM_NATIVE_INLINE void block(int32_t *to, ptrdiff_t apart, const uint32_t *x, const uint32_t *w,
                              const int32_t *starts, const ptrdiff_t *places, int32_t taps,
                              const arranged_t *shape, int32_t count, int32_t vectors)
{
    htvm_sums_t sums[MOST_CHANNELS][HTVM_VECTORS];
    #pragma GCC unroll 8
    for (int32_t k = 0; k < count; k++) {
        #pragma GCC unroll 8
        for (int32_t v = 0; v < vectors; v++) {
            sums[k][v] = htvm_sums_of(starts[k]);
        }
    }
    for (int32_t four = 0; four < shape->fours; four++, x += shape->plane) {
        for (int32_t tap = 0; tap < taps; tap++, w += count) {
            const uint32_t *const words = x + places[tap];
            htvm_data_t data[HTVM_VECTORS];
            #pragma GCC unroll 8
            for (int32_t v = 0; v < vectors; v++) {
                data[v] = htvm_data(words + v * HTVM_LANES);
            }
            #pragma GCC unroll 8
            for (int32_t k = 0; k < count; k++) {
                const htvm_factor_t factor = htvm_factor(w[k]);
                #pragma GCC unroll 8
                for (int32_t v = 0; v < vectors; v++) {
                    sums[k][v] = htvm_dot(sums[k][v], data[v], factor);
                }
            }
        }
    }
    #pragma GCC unroll 8
    for (int32_t k = 0; k < count; k++) {
        #pragma GCC unroll 8
        for (int32_t v = 0; v < vectors; v++) {
            htvm_sums_store(to + k * apart + v * HTVM_LANES, sums[k][v]);
        }
    }
}

/* Calls `block` with constant sizes. */
static void block_of(int32_t *to, ptrdiff_t apart, const uint32_t *x, const uint32_t *w,
                     const int32_t *starts, const ptrdiff_t *places, int32_t taps,
                     const arranged_t *shape, int32_t count, int32_t vectors)
{
#define HTVM_BLOCK(channels, number)                                                               \
    case 16 * channels + number:                                                                   \
        block(to, apart, x, w, starts, places, taps, shape, channels, number);                     \
        break
    switch (16 * count + vectors) {
        HTVM_BLOCK(1, 1);
        HTVM_BLOCK(4, 1);
#if HTVM_VECTORS > 1
        HTVM_BLOCK(1, 2);
        HTVM_BLOCK(4, 2);
        HTVM_BLOCK(8, 1);
#endif
#if HTVM_VECTORS > 2
        HTVM_BLOCK(1, 3);
        HTVM_BLOCK(1, 4);
        HTVM_BLOCK(1, 5);
        HTVM_BLOCK(1, 6);
        HTVM_BLOCK(4, 3);
        HTVM_BLOCK(4, 4);
        HTVM_BLOCK(4, 5);
        HTVM_BLOCK(4, 6);
        HTVM_BLOCK(8, 2);
        HTVM_BLOCK(8, 3);
#endif
    default:
        abort(); /* no such block is asked for */
    }
#undef HTVM_BLOCK
}

/* Where the sums of a block go: places of a line that has `width` for each row of the output. */
typedef struct {
    int32_t first, count; /* places of the block */
    int32_t width, columns;
} line_t;

/* Stores the sums of a channel that belong to pixels. */
static void store_pixels(int32_t *out, const int32_t *sums, line_t line)
{
    const int32_t end = line.first + line.count;
    for (int32_t at = line.first; at < end;) {
        const int32_t row = at / line.width, column = at % line.width;
        const int32_t rest = line.width - column < end - at ? line.width - column : end - at;
        const int32_t pixels = line.columns - column < rest ? line.columns - column : rest;
        if (pixels > 0) {
            memcpy(out + (ptrdiff_t)row * line.columns + column, sums + (at - line.first),
                   (size_t)pixels * sizeof *out);
        }
        at += rest;
    }
}

/* Operands of `convolve`. */
typedef struct {
    const uint32_t *x, *w;
    const int32_t *starts;
    const ptrdiff_t *places;
    int32_t taps;
} operands_t;

/* Computes `count` channels of a line of pixels, in blocks of nearly equal size. */
static void convolve(int32_t *out, ptrdiff_t map, const operands_t *given, const arranged_t *shape,
                     int32_t count, line_t line)
{
    const int32_t pixels = line.count, all = quotient_up(pixels, HTVM_LANES);
    const int32_t most = count == MOST_CHANNELS ? HTVM_VECTORS / 2 : HTVM_VECTORS;
    const int32_t blocks = quotient_up(all, most);
    int32_t sums[MOST_CHANNELS * SPAN];
    int32_t vector = 0;
    for (int32_t number = 0; number < blocks; number++) {
        const int32_t vectors = quotient_up(all - vector, blocks - number);
        line.first = vector * HTVM_LANES;
        line.count = pixels - line.first;
        const int32_t size = vectors * HTVM_LANES;
        const int direct = line.width == line.columns && line.count >= size;
        line.count = line.count < size ? line.count : size;
        block_of(direct ? out + line.first : sums, direct ? map : SPAN, given->x + line.first,
                 given->w, given->starts, given->places, given->taps, shape, count, vectors);
        for (int32_t k = 0; k < count && !direct; k++) {
            store_pixels(out + k * map, sums + k * SPAN, line);
        }
        vector += vectors;
    }
}

/* Computes `count` channels; rows are one line unless the places between them are too many. */
static void convolve_map(int32_t *out, const operands_t *given, const arranged_t *shape,
                         const htvm_native_conv_t *conv, int32_t count)
{
    const ptrdiff_t map = (ptrdiff_t)conv->rows * conv->columns;
    const int32_t whole = (conv->rows - 1) * shape->width + conv->columns;
    const int32_t vectors = quotient_up(conv->columns, HTVM_LANES) * conv->rows;
    if (quotient_up(whole, HTVM_LANES) <= vectors) {
        convolve(out, map, given, shape, count, (line_t){0, whole, shape->width, conv->columns});
        return;
    }
    for (int32_t y = 0; y < conv->rows; y++) {
        operands_t row = *given;
        row.x += (ptrdiff_t)y * shape->width;
        convolve(out + (ptrdiff_t)y * conv->columns, map, &row, shape, count,
                 (line_t){0, conv->columns, conv->columns, conv->columns});
    }
}

static const ptrdiff_t *places_of(const htvm_native_conv_t *conv, const arranged_t *x)
{
    ptrdiff_t *const places = scratch_of(2, (size_t)(conv->fy * conv->fx) * sizeof *places);
    for (int32_t fy = 0; fy < conv->fy; fy++) {
        for (int32_t fx = 0; fx < conv->fx; fx++) {
            const int32_t down = fy * conv->dilation_y, right = fx * conv->dilation_x;
            const int32_t phase =
                down % conv->stride_y * x->phases_x + right % conv->stride_x;
            places[fy * conv->fx + fx] =
                ((ptrdiff_t)phase * x->height + down / conv->stride_y) * x->width +
                right / conv->stride_x;
        }
    }
    return places;
}

void htvm_native_conv(const int8_t *in, const int8_t *weight, const int32_t *bias, int32_t *out,
                      const htvm_native_conv_t *conv)
{
    const int32_t taps = conv->fy * conv->fx;
    const ptrdiff_t map = (ptrdiff_t)conv->rows * conv->columns;
    const arranged_t shape = shape_of(conv);
    const uint32_t *const x = arrange(in, conv, &shape);
    const ptrdiff_t *const places = places_of(conv, &shape);
    uint32_t *const w =
        scratch_of(1, (size_t)shape.fours * (size_t)taps * MOST_CHANNELS * sizeof *w);
    const int32_t small = HTVM_VECTORS / 2 * HTVM_LANES;
    for (int32_t k = 0; k < conv->filters;) {
        int32_t starts[MOST_CHANNELS];
        const int32_t left = conv->filters - k;
        const int32_t count = left < 4 ? 1 : left >= 8 && map <= small ? 8 : 4;
        const int8_t *const filters = weight + (ptrdiff_t)k * conv->channels * taps;
        const int32_t *const own = bias == NULL ? NULL : bias + k;
        switch (count) {
        case 1:
            arrange_filters(w, filters, own, starts, conv->channels, taps, 1);
            break;
        case 4:
            arrange_filters(w, filters, own, starts, conv->channels, taps, 4);
            break;
        default:
            arrange_filters(w, filters, own, starts, conv->channels, taps, 8);
        }
        const operands_t given = {x, w, starts, places, taps};
        convolve_map(out + k * map, &given, &shape, conv, count);
        k += count;
    }
}

/* ---------------------------------------------------------------------------- depthwise */

#define DEPTHWISE_LINE 2048 /* places that are computed at once, if a row has no more */

/* Adds the products of a filter's row. */
HTVM_NATIVE_INLINE void add_row(uint32_t *restrict sums, const int8_t *x, const int8_t *weight,
                                const ptrdiff_t *places, int32_t taps, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        int32_t sum = 0; /* of at most 7 products */
        for (int32_t fx = 0; fx < taps; fx++) {
            sum += x[places[fx] + i] * weight[fx];
        }
        sums[i] += (uint32_t)sum;
    }
}

static void add_rows(uint32_t *sums, const int8_t *x, const int8_t *weight,
                     const ptrdiff_t *places, const htvm_native_conv_t *conv, int32_t count)
{
    for (int32_t fy = 0; fy < conv->fy; fy++, weight += conv->fx, places += conv->fx) {
        switch (conv->fx) {
        case 3:
            add_row(sums, x, weight, places, 3, count);
            break;
        case 5:
            add_row(sums, x, weight, places, 5, count);
            break;
        case 7:
            add_row(sums, x, weight, places, 7, count);
            break;
        default:
            for (int32_t fx = 0; fx < conv->fx; fx++) {
                add_row(sums, x, weight + fx, places + fx, 1, count);
            }
        }
    }
}

/* Returns a channel's map with phases one after the other; the map itself with stride 1. */
static const int8_t *phases_of(const int8_t *in, const htvm_native_conv_t *conv,
                               const arranged_t *x)
{
    if (conv->stride_y == 1 && conv->stride_x == 1) {
        return in;
    }
    int8_t *const to = scratch_of(0, (size_t)x->plane);
    for (int32_t y = 0; y < conv->height; y++) {
        for (int32_t phase = 0; phase < x->phases_x && y % conv->stride_y < x->phases_y; phase++) {
            const ptrdiff_t plane = (ptrdiff_t)(y % conv->stride_y) * x->phases_x + phase;
            int8_t *restrict place = to + (plane * x->height + y / conv->stride_y) * x->width;
            const int8_t *const row = in + (ptrdiff_t)y * conv->width + phase;
            const int32_t count = quotient_up(conv->width - phase, conv->stride_x);
            if (conv->stride_x == 2) {
                for (int32_t i = 0; i < count; i++) {
                    place[i] = row[2 * i];
                }
            } else {
                for (int32_t i = 0; i < count; i++) {
                    place[i] = row[(ptrdiff_t)conv->stride_x * i];
                }
            }
        }
    }
    return to;
}

void htvm_native_depthwise(const int8_t *in, const int8_t *weight, const int32_t *bias, int32_t *out,
                           const htvm_native_conv_t *conv)
{
    const arranged_t shape = shape_of(conv);
    const ptrdiff_t *const places = places_of(conv, &shape);
    const int32_t together = DEPTHWISE_LINE / shape.width > 1 ? DEPTHWISE_LINE / shape.width : 1;
    /* With many places between rows, each row is a line of its own. */
    const int32_t rows = shape.width > 2 * conv->columns ? 1 : together;
    uint32_t *const sums = scratch_of(1, (size_t)rows * (size_t)shape.width * sizeof *sums);
    for (int32_t c = 0; c < conv->filters; c++) {
        const int8_t *const x =
            phases_of(in + (ptrdiff_t)c * conv->height * conv->width, conv, &shape);
        const int8_t *const own = weight + (ptrdiff_t)c * conv->fy * conv->fx;
        const uint32_t start = bias == NULL ? 0u : (uint32_t)bias[c];
        for (int32_t y = 0; y < conv->rows; y += rows) {
            const int32_t there = conv->rows - y < rows ? conv->rows - y : rows;
            const int32_t count = (there - 1) * shape.width + conv->columns;
            for (int32_t i = 0; i < count; i++) {
                sums[i] = start;
            }
            add_rows(sums, x + (ptrdiff_t)y * shape.width, own, places, conv, count);
            for (int32_t row = 0; row < there; row++) {
                memcpy(out + ((ptrdiff_t)c * conv->rows + y + row) * conv->columns,
                       sums + (ptrdiff_t)row * shape.width,
                       (size_t)conv->columns * sizeof *out);
            }
        }
    }
}
