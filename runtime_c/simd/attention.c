/* Attention of one query over many positions; see htvm_attention.h. */
#include "htvm_attention.h"

/* One by one; also where the mask varies. */
static int32_t scores_of(const htvm_scores_t *p, const uint8_t *query, const uint8_t *keys,
                         const int8_t *mask, uint32_t count, uint32_t words, int8_t *scores,
                         int32_t largest)
{
    for (uint32_t n = 0; n < count; n++, keys += 4u * words) {
        const int32_t masked = htvm_attention_score(p, query, keys, mask[n], words);
        scores[n] = (int8_t)masked;
        largest = htvm_max(largest, masked);
    }
    return largest;
}

#if HTVM_SIMD
/* The same for heads of one word, two positions at a time, whose masks are all the same. */
static int32_t scores_alike(const htvm_scores_t *p, uint32_t query, const uint8_t *keys,
                            const int8_t *table, uint32_t pairs, int8_t *scores, int32_t largest)
{
    uint32_t a, b;
    __asm__ volatile(
        HTVM_LOOP
        ".insn r 0x2b, 4, 0, x10, %[count], x0\n" /* cv.count 0 */
        "3: cv.lw %[a], (%[keys]), 4\ncv.lw %[b], (%[keys]), 4\n"
        "cv.dotsp.b %[a], %[q], %[a]\ncv.dotsp.b %[b], %[q], %[b]\n"
        "mul %[a], %[a], %[mul]\nmul %[b], %[b], %[mul]\n"
        "cv.addnr %[a], %[add], %[shift]\ncv.addnr %[b], %[add], %[shift]\n"
        "cv.clip %[a], %[a], 8\ncv.clip %[b], %[b], 8\n"
        "cv.lb %[a], %[a](%[table])\ncv.lb %[b], %[b](%[table])\n"
        "cv.sb %[a], (%[out]), 1\ncv.sb %[b], (%[out]), 1\n"
        "cv.max %[top], %[top], %[a]\ncv.max %[top], %[top], %[b]\n"
        "4:\n.option pop\n"
        : [a] "=&r"(a), [b] "=&r"(b), [keys] "+&r"(keys), [out] "+&r"(scores), [top] "+&r"(largest)
        : [q] "r"(query), [mul] "r"(p->mul), [add] "r"(p->add), [shift] "r"(p->shift),
          [table] "r"(table + 128), [count] "r"(pairs)
        : "memory");
    return largest;
}
#endif

int32_t htvm_attention_scores(const htvm_scores_t *p, const uint8_t *query, const uint8_t *keys,
                              const int8_t *mask, uint32_t count, uint32_t words, int8_t *scores,
                              int32_t largest)
{
#if HTVM_SIMD
    while (words == 1u && count >= 4u) {
        /* A run of words of the mask in which nothing, or everything, is masked. */
        const uint32_t word = htvm_load4(mask);
        uint32_t run = 4;
        while (run + 4u <= count && htvm_load4(mask + run) == word) {
            run += 4;
        }
        if (word == 0u || word == 0x80808080u) {
            const int8_t *const table = word == 0u ? p->open : p->shut;
            largest = scores_alike(p, htvm_load4(query), keys, table, run / 2u, scores, largest);
        } else {
            largest = scores_of(p, query, keys, mask, run, 1, scores, largest);
        }
        keys += 4u * run;
        mask += run;
        scores += run;
        count -= run;
    }
#endif
    return scores_of(p, query, keys, mask, count, words, scores, largest);
}

uint32_t htvm_attention_sum(const int8_t *scores, uint32_t count, const uint32_t *exponentials,
                            int32_t largest)
{
    const uint32_t *const top = exponentials + largest;
    uint32_t sum = 0;
#if HTVM_SIMD
    uint32_t a, b;
    if (count >= 2u) {
        __asm__ volatile(
            HTVM_LOOP
            ".insn r 0x2b, 4, 0, x10, %[count], x0\n" /* cv.count 0 */
            "3: cv.lb %[a], (%[in]), 1\ncv.lb %[b], (%[in]), 1\n"
            "mul %[a], %[a], %[minus]\nmul %[b], %[b], %[minus]\n"
            "cv.lw %[a], %[a](%[top])\ncv.lw %[b], %[b](%[top])\n"
            "add %[sum], %[sum], %[a]\nadd %[sum], %[sum], %[b]\n"
            "4:\n.option pop\n"
            : [a] "=&r"(a), [b] "=&r"(b), [in] "+&r"(scores), [sum] "+&r"(sum)
            : [top] "r"(top), [minus] "r"(-4), [count] "r"(count / 2u)
            : "memory");
        count %= 2u;
    }
#endif
    for (uint32_t n = 0; n < count; n++) {
        sum += *(top - scores[n]);
    }
    return sum;
}

void htvm_attention_weights(int8_t *scores, uint32_t count, const int8_t *weights, int32_t largest)
{
    const int8_t *const own = weights + 255 - largest;
#if HTVM_SIMD
    uint32_t a, b;
    if (count >= 2u) {
        __asm__ volatile(
            HTVM_LOOP
            ".insn r 0x2b, 4, 0, x10, %[count], x0\n" /* cv.count 0 */
            "3: lb %[a], 0(%[in])\nlb %[b], 1(%[in])\n"
            "cv.lb %[a], %[a](%[own])\ncv.lb %[b], %[b](%[own])\n"
            "cv.sb %[a], (%[in]), 1\ncv.sb %[b], (%[in]), 1\n"
            "4:\n.option pop\n"
            : [a] "=&r"(a), [b] "=&r"(b), [in] "+&r"(scores)
            : [own] "r"(own), [count] "r"(count / 2u)
            : "memory");
        count %= 2u;
    }
#endif
    for (uint32_t n = 0; n < count; n++) {
        scores[n] = own[scores[n]];
    }
}

void htvm_attention_mix(const int8_t *weights, const uint8_t *values, uint32_t count,
                        uint32_t pitch, int32_t sums[4])
{
#if HTVM_SIMD
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    uint32_t a, b, c, d, e, f, w;
    if (count >= 4u) {
        __asm__ volatile(
            HTVM_LOOP
            ".insn r 0x2b, 4, 0, x10, %[count], x0\n" /* cv.count 0 */
            "3: cv.lw %[a], (%[in]), %[pitch]\ncv.lw %[b], (%[in]), %[pitch]\n"
            "cv.lw %[c], (%[in]), %[pitch]\ncv.lw %[d], (%[in]), %[pitch]\n"
            "cv.lw %[w], (%[weights]), 4\n"
            "cv.pack %[e], %[c], %[a]\ncv.pack %[f], %[d], %[b]\n"
            "cv.pack.h %[a], %[c], %[a]\ncv.pack.h %[b], %[d], %[b]\n"
            "mv %[c], %[e]\nmv %[d], %[a]\n"
            "cv.shuffle2.b %[e], %[f], %[even]\ncv.shuffle2.b %[c], %[f], %[odd]\n"
            "cv.shuffle2.b %[a], %[b], %[even]\ncv.shuffle2.b %[d], %[b], %[odd]\n"
            "cv.sdotsp.b %[s0], %[w], %[e]\ncv.sdotsp.b %[s1], %[w], %[c]\n"
            "cv.sdotsp.b %[s2], %[w], %[a]\ncv.sdotsp.b %[s3], %[w], %[d]\n"
            "4:\n.option pop\n"
            : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [e] "=&r"(e), [f] "=&r"(f),
              [w] "=&r"(w), [in] "+&r"(values), [weights] "+&r"(weights), [s0] "+&r"(s0),
              [s1] "+&r"(s1), [s2] "+&r"(s2), [s3] "+&r"(s3)
            : [pitch] "r"(pitch), [even] "r"(0x06020400u), [odd] "r"(0x07030501u),
              [count] "r"(count / 4u)
            : "memory");
        count %= 4u;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
#endif
    for (uint32_t n = 0; n < count; n++, values += pitch) {
        htvm_attention_add(weights[n], values, sums);
    }
}
