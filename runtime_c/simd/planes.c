/* Changes of layout between HWC and planes; see htvm_planes.h.  Blocks of 4 channels of 4 pixels are
 * transposed in registers: eight shuffles for 16 bytes. */
#include "htvm_planes.h"
#include "htvm_simd.h"

#define BLOCK 4u

/* Stores four bytes at a word-aligned address. */
HTVM_INLINE void store4(int8_t *at, uint32_t word)
{
#if HTVM_SIMD
    *(uint32_t __attribute__((may_alias)) *)at = word;
#else
    for (uint32_t i = 0; i < 4; i++) {
        at[i] = (int8_t)(uint8_t)(word >> (8 * i));
    }
#endif
}

/* Blocks of four words, in_step bytes apart, are transposed and stored out_step bytes apart.  Blocks
 * are in_next and out_next bytes apart, groups of blocks in_group and out_group.  There is at least
 * one block and one group. */
typedef struct {
    uint32_t blocks, groups;
    uint32_t in_step, in_next, in_group;
    uint32_t out_step, out_next, out_group;
} blocks_t;

#define LOW 0x05010400u   /* the lower halves of two words, interleaved */
#define HIGH 0x07030602u  /* the upper halves, interleaved */
#define FIRST 0x05040100u /* the lower halves of two words */
#define LAST 0x07060302u  /* the upper halves */

#if HTVM_SIMD
/* Neither address need be aligned: the core accesses across words in two cycles. */
HTVM_INLINE void transpose(const blocks_t *p, const int8_t *in, int8_t *out)
{
    uint32_t a, b, c, d, e, f = p->groups;
    const uint32_t back_in = p->in_next - 4u * p->in_step;
    const uint32_t back_out = p->out_next - 4u * p->out_step, blocks = p->blocks;
    const uint32_t in_group = p->in_group - blocks * p->in_next;
    const uint32_t out_group = p->out_group - blocks * p->out_next;
    __asm__ volatile(
        HTVM_LOOPS
        ".insn r 0x2b, 4, 0, x11, %[f], x0\n"      /* cv.count 1 */
        "lw %[f], %[blocks]\n"
        "2: .insn r 0x2b, 4, 0, x10, %[f], x0\n" /* cv.count 0 */
        "3: cv.lw %[a], (%[in]), %[in_step]\n"
        "cv.lw %[b], (%[in]), %[in_step]\n"
        "cv.lw %[c], (%[in]), %[in_step]\n"
        "cv.lw %[d], (%[in]), %[in_step]\n"
        "mv %[e], %[a]\nmv %[f], %[c]\n"
        "cv.shuffle2.b %[a], %[b], %[low]\ncv.shuffle2.b %[e], %[b], %[high]\n"
        "cv.shuffle2.b %[c], %[d], %[low]\ncv.shuffle2.b %[f], %[d], %[high]\n"
        "mv %[b], %[a]\nmv %[d], %[e]\n"
        "cv.shuffle2.b %[a], %[c], %[first]\ncv.shuffle2.b %[b], %[c], %[last]\n"
        "cv.shuffle2.b %[d], %[f], %[first]\ncv.shuffle2.b %[e], %[f], %[last]\n"
        "cv.sw %[a], (%[out]), %[out_step]\n"
        "cv.sw %[b], (%[out]), %[out_step]\n"
        "cv.sw %[d], (%[out]), %[out_step]\n"
        "cv.sw %[e], (%[out]), %[out_step]\n"
        "add %[in], %[in], %[back_in]\nadd %[out], %[out], %[back_out]\n"
        "4: lw %[a], %[in_group]\nlw %[b], %[out_group]\nlw %[f], %[blocks]\n"
        "add %[in], %[in], %[a]\nadd %[out], %[out], %[b]\n"
        "5:\n.option pop\n"
        : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [e] "=&r"(e), [f] "+&r"(f),
          [in] "+&r"(in), [out] "+&r"(out)
        : [in_step] "r"(p->in_step), [out_step] "r"(p->out_step), [back_in] "r"(back_in),
          [back_out] "r"(back_out), [low] "r"(LOW), [high] "r"(HIGH), [first] "r"(FIRST),
          [last] "r"(LAST), [blocks] "m"(blocks), [in_group] "m"(in_group),
          [out_group] "m"(out_group)
        : "memory");
}
#else
HTVM_INLINE void transpose(const blocks_t *p, const int8_t *in, int8_t *out)
{
    for (uint32_t g = 0; g < p->groups; g++, in += p->in_group, out += p->out_group) {
        for (uint32_t at = 0; at < p->blocks * BLOCK * BLOCK; at++) {
            const uint32_t n = at / (BLOCK * BLOCK), i = at / BLOCK % BLOCK, j = at % BLOCK;
            out[n * p->out_next + i * p->out_step + j] = in[n * p->in_next + j * p->in_step + i];
        }
    }
}
#endif

/* Sets `bytes` bytes, a multiple of 4, at a word-aligned address. */
static void fill(int8_t *at, uint32_t bytes, uint32_t word)
{
    const int8_t *const end = at + bytes, *const whole = at + (bytes & ~31u);
    for (; at != whole; at += 32) {
        HTVM_UNROLL(8)
        for (uint32_t i = 0; i < 32; i += 4) {
            store4(at + i, word);
        }
    }
    for (; at != end; at += 4) {
        store4(at, word);
    }
}

void htvm_to_planes(const htvm_to_planes_t *p)
{
    const uint32_t plane = p->planes.plane, pitch = p->planes.row, pixel = p->pixel;
    const uint32_t whole = p->x - p->x % BLOCK;
    const blocks_t row = {
        whole / BLOCK, p->k / BLOCK, pixel, BLOCK * pixel, BLOCK, plane, BLOCK, BLOCK * plane,
    };
    fill(p->out, p->k * plane, (uint8_t)p->border * 0x01010101u);
    for (uint32_t y = 0; y < p->y; y++) {
        const int8_t *const in = p->in + y * p->x * pixel;
        int8_t *const out = p->out + (p->top + y) * pitch + p->left;
        if (whole != 0 && p->k >= BLOCK) {
            transpose(&row, in, out);
        }
        for (uint32_t x = whole; x < p->x; x++) {
            for (uint32_t k = 0; k < p->k; k++) {
                out[k * plane + x] = in[x * pixel + k];
            }
        }
    }
}

void htvm_from_planes(const htvm_from_planes_t *p)
{
    const uint32_t plane = p->planes.plane, pixel = p->pixel, whole = p->x - p->x % BLOCK;
    const blocks_t row = {
        whole / BLOCK, p->k / BLOCK, plane, BLOCK, BLOCK * plane, pixel, BLOCK * pixel, BLOCK,
    };
    for (uint32_t y = 0; y < p->y; y++) {
        const int8_t *const in = p->in + y * p->planes.row;
        int8_t *const out = p->out + y * p->x * pixel;
        if (whole != 0 && p->k >= BLOCK) {
            transpose(&row, in, out);
        }
        for (uint32_t x = whole; x < p->x; x++) {
            for (uint32_t k = 0; k < p->k; k++) {
                out[x * pixel + k] = in[k * plane + x];
            }
        }
    }
}
