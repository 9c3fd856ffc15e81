/* cluster_matmul for cores with SIMD.
 *
 * Four columns of a matrix at a time become a quad in scratch memory, which all its rows are then
 * multiplied with.  Such fours are shared among groups of cores, and rows among those of a group. */
#include "cluster_kernels.h"
#include "cluster_records.h"
#include "cluster_split.h"
#include "htvm_quads.h"
#include "htvm_simd.h"
#include "htvm_transpose.h"

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

void cluster_matmul(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_matmul_t *const m = args;
    const uint32_t words = cluster_words(m->c), each = cluster_words(m->k);
    cluster_work_t work = cluster_quad_work(m->rows, m->batch * each, words);
    work.item = 20u * words + 300u;
    const cluster_part_t part = cluster_split(&work, core, cores);
    const cluster_share_t fours = part.items, rows = cluster_in_fours(part.blocks, m->rows);
    if (fours.begin >= fours.end || rows.begin >= rows.end) {
        return;
    }
    uint8_t *const quad = (uint8_t *)m->scratch + core * htvm_quad_bytes(words);
    uint8_t *factors = quad + 16u * words;
    for (uint32_t j = 0; j < HTVM_QUAD; j++, factors += 12) {
        htvm_store4(factors, (uint32_t)m->requant.mul);
        htvm_store4(factors + 4, (uint32_t)m->requant.add);
        htvm_store4(factors + 8, m->requant.shift);
    }
    for (uint32_t j = 0; j < HTVM_QUAD; j++) {
        htvm_store4(factors + 4 * j, 0); /* biases */
    }
    htvm_quads_t quads = {
        .quads = quad,
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
    const uint8_t *const in = (const uint8_t *)m->a + rows.begin * m->c;
    uint8_t *const out = (uint8_t *)m->out + rows.begin * m->k;
    uint32_t matrix = fours.begin / each, k = (fours.begin - matrix * each) * 4u;
    for (uint32_t n = fours.begin; n < fours.end; n++) {
        const uint8_t *const second = (const uint8_t *)m->second + matrix * m->c * m->k;
        if ((m->flags & CLUSTER_B_ROWS) != 0) {
            from_rows(m, second, k, quad);
        } else {
            from_columns(m, second, k, quad);
        }
        quads.k = m->k - k < HTVM_QUAD ? m->k - k : HTVM_QUAD;
        htvm_quads(&quads, in + matrix * m->rows * m->c, out + matrix * m->rows * m->k + k,
                   rows.end - rows.begin);
        k += HTVM_QUAD;
        if (k >= m->k) {
            k = 0;
            matrix++;
        }
    }
}
