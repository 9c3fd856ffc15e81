/* Sums of elements; see htvm_add.h.  A dot product with a word that has one element picks an element
 * of another word, multiplies it, and adds it to a sum. */
#include "htvm_add.h"

#include "htvm_scale.h"

#define LANES 4u

#if HTVM_SIMD
typedef struct {
    const uint8_t *a, *b;
    uint8_t *out;
    uint32_t blocks;
    uint32_t unit; /* the byte that elements are multiplied with */
} pair_t;

#define PICK(op, x)                                                                                \
    op " %[s0], %[" x "], %[u0]\n" op " %[s1], %[" x "], %[u1]\n"                                  \
    op " %[s2], %[" x "], %[u2]\n" op " %[s3], %[" x "], %[u3]\n"
#define FOR_ALL(text) text("s0") text("s1") text("s2") text("s3")
#define SCALE(s) "mul %[" s "], %[" s "], %[mul]\n"
#define NO_SCALE(s)
#define SHIFT(s) "cv.addnr %[" s "], %[add], %[shift]\n"
#define CLIP_SIGNED(s) "cv.clipr %[" s "], %[" s "], %[high]\n"
#define CLIP_LIMITS(s) "cv.max %[" s "], %[" s "], %[low]\ncv.min %[" s "], %[" s "], %[high]\n"

/* Four elements of two operands a round. */
#define PAIR(name, kind, scale, clip)                                                              \
    static void name(const htvm_add_t *p, const pair_t *pair)                                      \
    {                                                                                              \
        const uint8_t *a = pair->a, *b = pair->b;                                                  \
        uint8_t *out = pair->out;                                                                  \
        int32_t s0, s1, s2, s3;                                                                    \
        uint32_t x, y;                                                                             \
        __asm__ volatile(                                                                          \
            HTVM_LOOP                                                                              \
            ".insn r 0x2b, 4, 0, x10, %[blocks], x0\n" /* cv.count 0 */                            \
            "3: cv.lw %[x], (%[a]), 4\ncv.lw %[y], (%[b]), 4\n"                                    \
            PICK("cv.dot" kind ".b", "x") PICK("cv.sdot" kind ".b", "y")                           \
            FOR_ALL(scale) FOR_ALL(SHIFT) FOR_ALL(clip)                                            \
            "cv.packlo.b %[s0], %[s1], %[s0]\ncv.packhi.b %[s0], %[s3], %[s2]\n"                   \
            "cv.sw %[s0], (%[out]), 4\n"                                                           \
            "4:\n.option pop\n"                                                                    \
            : [a] "+&r"(a), [b] "+&r"(b), [out] "+&r"(out), [x] "=&r"(x), [y] "=&r"(y),            \
              [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3)                       \
            : [blocks] "r"(pair->blocks), [u0] "r"(pair->unit), [u1] "r"(pair->unit << 8),         \
              [u2] "r"(pair->unit << 16), [u3] "r"(pair->unit << 24), [mul] "r"(p->mul),           \
              [add] "r"(p->add), [shift] "r"(p->shift), [low] "r"(p->low), [high] "r"(p->high)     \
            : "memory");                                                                           \
    }

PAIR(signed_to_signed, "sp", SCALE, CLIP_SIGNED)
PAIR(signed_to_limits, "sp", SCALE, CLIP_LIMITS)
PAIR(signed_small_to_signed, "sp", NO_SCALE, CLIP_SIGNED)
PAIR(signed_small_to_limits, "sp", NO_SCALE, CLIP_LIMITS)
PAIR(unsigned_to_signed, "usp", SCALE, CLIP_SIGNED)
PAIR(unsigned_to_limits, "usp", SCALE, CLIP_LIMITS)
PAIR(unsigned_small_to_signed, "usp", NO_SCALE, CLIP_SIGNED)
PAIR(unsigned_small_to_limits, "usp", NO_SCALE, CLIP_LIMITS)

static void add_two(const htvm_add_t *p, uint8_t *out, uint32_t at, uint32_t blocks)
{
    const bool is_signed = p->low == -p->high - 1, is_small = p->mul >= -128 && p->mul <= 127;
    const pair_t pair = {
        (const uint8_t *)p->in[0] + at, (const uint8_t *)p->in[1] + at, out + at, blocks,
        is_small ? (uint8_t)p->mul : 1u,
    };
    if (p->in_unsigned && is_small) {
        (is_signed ? unsigned_small_to_signed : unsigned_small_to_limits)(p, &pair);
    } else if (p->in_unsigned) {
        (is_signed ? unsigned_to_signed : unsigned_to_limits)(p, &pair);
    } else if (is_small) {
        (is_signed ? signed_small_to_signed : signed_small_to_limits)(p, &pair);
    } else {
        (is_signed ? signed_to_signed : signed_to_limits)(p, &pair);
    }
}
#endif

/* Blocks of four elements of `count` operands; returns the first element that is left. */
HTVM_INLINE uint32_t fours(const htvm_add_t *p, uint8_t *out, uint32_t at, uint32_t end,
                           uint32_t count, bool is_unsigned)
{
    const uint8_t *in[4];
    for (uint32_t n = 0; n < count && n < 4; n++) {
        in[n] = p->in[n];
    }
    for (; at + LANES <= end; at += LANES) {
        int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (uint32_t n = 0; n < count; n++) {
            const uint32_t word = htvm_load4((count <= 4 ? in[n] : (const uint8_t *)p->in[n]) + at);
            s0 = is_unsigned ? htvm_dot4_unsigned(word, 1u, s0) : htvm_dot4(word, 1u, s0);
            s1 = is_unsigned ? htvm_dot4_unsigned(word, 1u << 8, s1) : htvm_dot4(word, 1u << 8, s1);
            s2 = is_unsigned ? htvm_dot4_unsigned(word, 1u << 16, s2)
                             : htvm_dot4(word, 1u << 16, s2);
            s3 = is_unsigned ? htvm_dot4_unsigned(word, 1u << 24, s3)
                             : htvm_dot4(word, 1u << 24, s3);
        }
        s0 = htvm_limit(htvm_scale(s0, p->mul, p->add, p->shift), p->low, p->high);
        s1 = htvm_limit(htvm_scale(s1, p->mul, p->add, p->shift), p->low, p->high);
        s2 = htvm_limit(htvm_scale(s2, p->mul, p->add, p->shift), p->low, p->high);
        s3 = htvm_limit(htvm_scale(s3, p->mul, p->add, p->shift), p->low, p->high);
        htvm_store4(out + at, (uint32_t)(uint8_t)s0 | (uint32_t)(uint8_t)s1 << 8 |
                                  (uint32_t)(uint8_t)s2 << 16 | (uint32_t)s3 << 24);
    }
    return at;
}

static void one(const htvm_add_t *p, uint8_t *out, uint32_t at)
{
    int32_t sum = 0;
    for (uint32_t n = 0; n < p->operands; n++) {
        const uint8_t byte = ((const uint8_t *)p->in[n])[at];
        sum += p->in_unsigned ? (int32_t)byte : (int32_t)(int8_t)byte;
    }
    if (p->wide) {
        out[at] = (uint8_t)htvm_scale_wide(sum, p->mul, p->add, p->shift, p->low, p->high);
    } else {
        out[at] = (uint8_t)htvm_limit(htvm_scale(sum, p->mul, p->add, p->shift), p->low, p->high);
    }
}

void htvm_add(const htvm_add_t *what, uint8_t *out, uint32_t at, uint32_t end)
{
    const htvm_add_t p = *what; /* stored bytes cannot change it */
#if HTVM_SIMD
    if (!p.wide && p.operands == 2 && at + LANES <= end) {
        const uint32_t blocks = (end - at) / LANES;
        add_two(&p, out, at, blocks);
        at += LANES * blocks;
    }
#endif
    if (!p.wide && p.in_unsigned) {
        at = fours(&p, out, at, end, p.operands, true);
    } else if (!p.wide && p.operands == 3) {
        at = fours(&p, out, at, end, 3, false);
    } else if (!p.wide) {
        at = fours(&p, out, at, end, p.operands, false);
    }
    for (; at < end; at++) {
        one(&p, out, at);
    }
}
