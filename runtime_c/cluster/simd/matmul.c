/* cluster_matmul for cores with SIMD.
 *
 * Four columns of a matrix at a time become a quad in scratch memory, which all its rows are then
 * multiplied with.  Such fours are shared among groups of cores, and rows among those of a group. */
#include "cluster_kernels.h"
#include "cluster_records.h"
#include "htvm_quads.h"
#include "htvm_simd.h"
#include "htvm_transpose.h"

typedef struct {
    cluster_share_t fours, rows; /* of all matrices; of each */
} part_t;

static part_t part_of(const cluster_matmul_t *m, uint32_t fours, uint32_t words, uint32_t core,
                      uint32_t cores)
{
    const uint32_t blocks = (m->rows + 3u) / 4u;
    uint32_t size = 1, best = UINT32_MAX;
    for (uint32_t n = 1; n <= cores && (cores & (n - 1u)) == 0; n *= 2) {
        const uint32_t groups = cluster_divided(cores, n);
        const uint32_t each = cluster_divided(fours + groups - 1u, groups);
        const uint32_t rows = cluster_divided(blocks + n - 1u, n);
        const uint32_t cost = each * (rows * (24u * words + 90u) + 20u * words + 300u);
        if (cost < best) {
            best = cost;
            size = n;
        }
    }
    const uint32_t group = cluster_divided(core, size);
    part_t part = {cluster_share(fours, group, cluster_divided(cores, size)),
                   cluster_share(blocks, core - group * size, size)};
    part.rows.begin *= 4u;
    part.rows.end = 4u * part.rows.end < m->rows ? 4u * part.rows.end : m->rows;
    return part;
}

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
    const part_t part = part_of(m, m->batch * each, words, core, cores);
    if (part.fours.begin >= part.fours.end || part.rows.begin >= part.rows.end) {
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
    const uint8_t *const in = (const uint8_t *)m->a + part.rows.begin * m->c;
    uint8_t *const out = (uint8_t *)m->out + part.rows.begin * m->k;
    uint32_t matrix = part.fours.begin / each, k = (part.fours.begin - matrix * each) * 4u;
    for (uint32_t n = part.fours.begin; n < part.fours.end; n++) {
        const uint8_t *const second = (const uint8_t *)m->second + matrix * m->c * m->k;
        if ((m->flags & CLUSTER_B_ROWS) != 0) {
            from_rows(m, second, k, quad);
        } else {
            from_columns(m, second, k, quad);
        }
        quads.k = m->k - k < HTVM_QUAD ? m->k - k : HTVM_QUAD;
        htvm_quads(&quads, in + matrix * m->rows * m->c, out + matrix * m->rows * m->k + k,
                   part.rows.end - part.rows.begin);
        k += HTVM_QUAD;
        if (k >= m->k) {
            k = 0;
            matrix++;
        }
    }
}
