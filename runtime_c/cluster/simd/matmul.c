/* cluster_matmul for cores with SIMD.
 *
 * Four columns of a matrix at a time become a quad in scratch memory, which all its rows are then
 * multiplied with; a single row is multiplied with the columns where they are, if their elements lie
 * side by side.  Such fours are shared among groups of cores, and rows among those of a group. */
#include <stddef.h>

#include "cluster_kernels.h"
#include "cluster_records.h"
#include "cluster_split.h"
#include "htvm_quads.h"
#include "htvm_scale.h"
#include "htvm_simd.h"
#include "htvm_transpose.h"
#include "htvm_vector.h"

/* Makes a quad of rows k to k + 3 of a matrix [K][C]; rows that are not there are multiplied, too, but
 * have no results. */
static void from_rows(const cluster_matmul_t *m, const uint8_t *matrix, uint32_t k, uint8_t *quad)
{
    const uint32_t c = m->c, whole = c / 4u, rest = c % 4u;
    const uint32_t last = m->k - 1u;
    const uint8_t *row[4];
    for (uint32_t j = 0; j < 4; j++) {
        row[j] = matrix + (k + j < last ? k + j : last) * c;
    }
    const uint8_t *a = row[0], *b = row[1], *d = row[2], *e = row[3];
    for (uint32_t i = 0; i < whole; i++, quad += 16) {
        const uint32_t w0 = htvm_load4(a), w1 = htvm_load4(b);
        const uint32_t w2 = htvm_load4(d), w3 = htvm_load4(e);
        a += 4;
        b += 4;
        d += 4;
        e += 4;
        htvm_store4(quad, w0);
        htvm_store4(quad + 4, w1);
        htvm_store4(quad + 8, w2);
        htvm_store4(quad + 12, w3);
    }
    if (rest != 0) {
        const uint32_t mask = (1u << (8u * rest)) - 1u;
        for (uint32_t j = 0; j < 4; j++) {
            htvm_store4(quad + 4 * j, htvm_load4(row[j] + 4u * whole) & mask);
        }
    }
}

/* The same of columns k to k + 3 of a matrix [C][K]. */
static void from_columns(const cluster_matmul_t *m, const uint8_t *matrix, uint32_t k,
                         uint8_t *quad)
{
    static const uint32_t nothing = 0;
    const uint32_t c = m->c, whole = c / 4u, rest = c % 4u, pitch = m->k;
    const uint8_t *const from = matrix + k;
    const uint32_t next = 4u * pitch;
    const htvm_rows_t rows = {
        {from, from + pitch, from + 2 * pitch, from + 3 * pitch}, {next, next, next, next},
    };
    const htvm_transposed_t transposed = {whole, 4, 16, 0};
    htvm_transpose(&transposed, &rows, quad);
    if (rest != 0) {
        const uint8_t *const last = from + whole * next, *const zero = (const uint8_t *)&nothing;
        const htvm_rows_t more = {
            {last, rest > 1 ? last + pitch : zero, rest > 2 ? last + 2 * pitch : zero, zero},
            {0, 0, 0, 0},
        };
        const htvm_transposed_t one = {1, 4, 16, 0};
        htvm_transpose(&one, &more, quad + 16u * whole);
    }
}

/* Multiplies the only row of a matrix with fours from k on, at most `most` of them; returns how many. */
static uint32_t one_row(const cluster_matmul_t *m, uint32_t matrix, uint32_t k, uint32_t most)
{
    const uint32_t there = (m->k - k) / 4u, fours = there < most ? there : most;
    const htvm_vector_t vector = {
        .in = (const uint8_t *)m->a + matrix * m->c,
        .rows = (const uint8_t *)m->second + (matrix * m->k + k) * m->c,
        .out = (uint8_t *)m->out + matrix * m->k + k,
        .words = m->c / 4u,
        .quads = fours,
        .mul = m->requant.mul,
        .add = m->requant.add,
        .shift = m->requant.shift,
        .low = m->requant.low,
        .high = m->requant.high,
        .in_unsigned = (m->flags & CLUSTER_IN_UNSIGNED) != 0,
    };
    if (fours != 0) {
        htvm_vector(&vector);
    }
    return fours;
}

/* Sets the factors of a quad, and its biases of 0. */
static void set_factors(const cluster_requant_t *r, uint8_t *factors)
{
    for (uint32_t j = 0; j < HTVM_QUAD; j++, factors += 12) {
        htvm_store4(factors, (uint32_t)r->mul);
        htvm_store4(factors + 4, (uint32_t)r->add);
        htvm_store4(factors + 8, r->shift);
    }
    for (uint32_t j = 0; j < HTVM_QUAD; j++) {
        htvm_store4(factors + 4 * j, 0);
    }
}

/* Multiplies rows of a matrix with columns k to k + 3. */
static void four_columns(const cluster_matmul_t *m, uint32_t matrix, uint32_t k,
                         cluster_share_t rows, uint8_t *quad)
{
    const uint32_t words = cluster_words(m->c), row = matrix * m->rows + rows.begin;
    const uint8_t *const second = (const uint8_t *)m->second + matrix * m->c * m->k;
    const htvm_quads_t quads = {
        .quads = quad,
        .table = NULL,
        .k = m->k - k < HTVM_QUAD ? m->k - k : HTVM_QUAD,
        .taps = 1,
        .words = words,
        .in_tap = 4u * words,
        .in_pixel = m->c,
        .out_pixel = m->k,
        .out_channel = 1,
        .low = m->requant.low,
        .high = m->requant.high,
        .scaling = (m->flags & CLUSTER_WIDE) != 0 ? HTVM_QUADS_WIDE : HTVM_QUADS_NARROW,
        .in_unsigned = (m->flags & CLUSTER_IN_UNSIGNED) != 0,
    };
    if ((m->flags & CLUSTER_B_ROWS) != 0) {
        from_rows(m, second, k, quad);
    } else {
        from_columns(m, second, k, quad);
    }
    htvm_quads(&quads, (const uint8_t *)m->a + row * m->c, (uint8_t *)m->out + row * m->k + k,
               rows.end - rows.begin);
}

/* Rows of four times a 4 x 4 matrix, such as the rotation of heads: no record is worth its packing. */
static void four_by_four(const cluster_matmul_t *m, cluster_share_t rows)
{
    const uint8_t *const second = (const uint8_t *)m->second;
    const cluster_requant_t r = m->requant; /* stays in registers, whatever is stored */
    const uint8_t *const a_rows = (const uint8_t *)m->a;
    uint8_t *const out = (uint8_t *)m->out;
    uint32_t columns[4];
    const uint32_t a = htvm_load4(second), b = htvm_load4(second + 4);
    const uint32_t c = htvm_load4(second + 8), d = htvm_load4(second + 12);
    for (uint32_t j = 0; j < 4u; j++) {
        const uint32_t at = 8u * j;
        columns[j] = (a >> at & 255u) | (b >> at & 255u) << 8 | (c >> at & 255u) << 16 |
                     (d >> at & 255u) << 24;
    }
    for (uint32_t i = rows.begin; i < rows.end; i++) {
        const uint32_t row = htvm_load4(a_rows + 4u * i);
        int32_t y[4];
        for (uint32_t j = 0; j < 4u; j++) {
            y[j] = htvm_scale(htvm_dot4(row, columns[j], 0), r.mul, r.add, r.shift);
        }
        for (uint32_t j = 0; j < 4u; j++) {
            out[4u * i + j] = (uint8_t)htvm_limit(y[j], r.low, r.high);
        }
    }
}

void cluster_matmul(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_matmul_t *const m = args;
    if (m->workers != 0) {
        cores = m->workers;
    }
    if (core >= cores) {
        return;
    }
    const uint32_t special = CLUSTER_IN_UNSIGNED | CLUSTER_WIDE | CLUSTER_B_ROWS;
    if (m->c == 4u && m->k == 4u && m->batch == 1u && (m->flags & special) == 0) {
        four_by_four(m, cluster_share(m->rows, core, cores));
        return;
    }
    const uint32_t words = cluster_words(m->c), each = cluster_words(m->k);
    const bool is_vector = m->rows == 1 && m->c % 4u == 0 &&
                           (m->flags & (CLUSTER_B_ROWS | CLUSTER_WIDE)) == CLUSTER_B_ROWS;
    cluster_work_t work = cluster_quad_work(m->rows, m->batch * each, words);
    work.item = 20u * words + 300u;
    const cluster_part_t part = cluster_split(&work, core, cores);
    const cluster_share_t fours = part.items, rows = cluster_in_fours(part.blocks, m->rows);
    if (fours.begin >= fours.end || rows.begin >= rows.end) {
        return;
    }
    uint8_t *const quad = (uint8_t *)m->scratch + core * htvm_quad_bytes(words);
    set_factors(&m->requant, quad + 16u * words);
    uint32_t matrix = fours.begin / each, k = (fours.begin - matrix * each) * 4u;
    uint32_t left = fours.end - fours.begin;
    while (left != 0) {
        uint32_t done = is_vector ? one_row(m, matrix, k, left) : 0;
        if (done == 0) {
            four_columns(m, matrix, k, rows, quad);
            done = 1;
        }
        left -= done;
        k += 4u * done;
        if (k >= m->k) {
            k = 0;
            matrix++;
        }
    }
}
