/* Vectors of int32 sums, of this machine's widest kind with products of bytes.
 *
 * Selected by what the compiler may use; HTVM_NATIVE_PLAIN selects plain C.  Each kind defines
 *   HTVM_LANES       sums in a vector,
 *   HTVM_VECTORS     vectors of pixels that a block of four channels has registers for,
 *   HTVM_LIFTED      whether the data are unsigned: int8 plus 128,
 *   htvm_sums_t      a vector of sums, htvm_data_t of words of four bytes, htvm_factor_t one word for
 *                    all lanes,
 * and functions that load, store, and add the products of words.  All are exact: no step saturates,
 * and sums wrap around.
 */
#ifndef HTVM_NATIVE_VECTORS_H
#define HTVM_NATIVE_VECTORS_H

#include <stdint.h>

#define HTVM_NATIVE_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512VNNI__) && defined(__AVX512F__) && !defined(HTVM_NATIVE_PLAIN)
#include <immintrin.h>
#define HTVM_NATIVE_KIND "AVX-512 VNNI"
#define HTVM_LANES 16
#define HTVM_VECTORS 6
#define HTVM_LIFTED 1
typedef __m512i htvm_sums_t, htvm_data_t, htvm_factor_t;

HTVM_NATIVE_INLINE htvm_sums_t htvm_sums_of(int32_t value) { return _mm512_set1_epi32(value); }
HTVM_NATIVE_INLINE void htvm_sums_store(int32_t *to, htvm_sums_t sums)
{
    _mm512_storeu_si512((void *)to, sums);
}
HTVM_NATIVE_INLINE htvm_data_t htvm_data(const uint32_t *words)
{
    return _mm512_loadu_si512((const void *)words);
}
HTVM_NATIVE_INLINE htvm_factor_t htvm_factor(uint32_t word)
{
    return _mm512_set1_epi32((int32_t)word);
}
HTVM_NATIVE_INLINE htvm_sums_t htvm_dot(htvm_sums_t sums, htvm_data_t x, htvm_factor_t w)
{
    return _mm512_dpbusd_epi32(sums, x, w);
}

#elif defined(__AVX2__) && !defined(HTVM_NATIVE_PLAIN)
#include <immintrin.h>
#define HTVM_LANES 8
typedef __m256i htvm_sums_t;

HTVM_NATIVE_INLINE htvm_sums_t htvm_sums_of(int32_t value) { return _mm256_set1_epi32(value); }
HTVM_NATIVE_INLINE void htvm_sums_store(int32_t *to, htvm_sums_t sums)
{
    _mm256_storeu_si256((__m256i *)(void *)to, sums);
}

#if defined(__AVXVNNI__)
#define HTVM_NATIVE_KIND "AVX-VNNI"
#define HTVM_VECTORS 2
#define HTVM_LIFTED 1
typedef __m256i htvm_data_t, htvm_factor_t;

HTVM_NATIVE_INLINE htvm_data_t htvm_data(const uint32_t *words)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)words);
}
HTVM_NATIVE_INLINE htvm_factor_t htvm_factor(uint32_t word)
{
    return _mm256_set1_epi32((int32_t)word);
}
HTVM_NATIVE_INLINE htvm_sums_t htvm_dot(htvm_sums_t sums, htvm_data_t x, htvm_factor_t w)
{
    return _mm256_dpbusd_avx_epi32(sums, x, w);
}
#else
#define HTVM_NATIVE_KIND "AVX2"
#define HTVM_VECTORS 2
#define HTVM_LIFTED 0
/* Bytes 0 and 2, and bytes 1 and 3 of each word, as int16: products of pairs of them are exact. */
typedef struct {
    __m256i even, odd;
} htvm_data_t, htvm_factor_t;

HTVM_NATIVE_INLINE htvm_data_t htvm_widened(__m256i words)
{
    const __m256i odd = _mm256_srai_epi16(words, 8);
    return (htvm_data_t){_mm256_srai_epi16(_mm256_slli_epi16(words, 8), 8), odd};
}
HTVM_NATIVE_INLINE htvm_data_t htvm_data(const uint32_t *words)
{
    return htvm_widened(_mm256_loadu_si256((const __m256i *)(const void *)words));
}
HTVM_NATIVE_INLINE htvm_factor_t htvm_factor(uint32_t word)
{
    return htvm_widened(_mm256_set1_epi32((int32_t)word));
}
HTVM_NATIVE_INLINE htvm_sums_t htvm_dot(htvm_sums_t sums, htvm_data_t x, htvm_factor_t w)
{
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(x.even, w.even));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(x.odd, w.odd));
}
#endif

#elif defined(__SSE2__) && !defined(HTVM_NATIVE_PLAIN)
#include <emmintrin.h>
#define HTVM_NATIVE_KIND "SSE2"
#define HTVM_LANES 4
#define HTVM_VECTORS 2
#define HTVM_LIFTED 0
typedef __m128i htvm_sums_t;
/* As with AVX2. */
typedef struct {
    __m128i even, odd;
} htvm_data_t, htvm_factor_t;

HTVM_NATIVE_INLINE htvm_sums_t htvm_sums_of(int32_t value) { return _mm_set1_epi32(value); }
HTVM_NATIVE_INLINE void htvm_sums_store(int32_t *to, htvm_sums_t sums)
{
    _mm_storeu_si128((__m128i *)(void *)to, sums);
}
HTVM_NATIVE_INLINE htvm_data_t htvm_widened(__m128i words)
{
    const __m128i odd = _mm_srai_epi16(words, 8);
    return (htvm_data_t){_mm_srai_epi16(_mm_slli_epi16(words, 8), 8), odd};
}
HTVM_NATIVE_INLINE htvm_data_t htvm_data(const uint32_t *words)
{
    return htvm_widened(_mm_loadu_si128((const __m128i *)(const void *)words));
}
HTVM_NATIVE_INLINE htvm_factor_t htvm_factor(uint32_t word)
{
    return htvm_widened(_mm_set1_epi32((int32_t)word));
}
HTVM_NATIVE_INLINE htvm_sums_t htvm_dot(htvm_sums_t sums, htvm_data_t x, htvm_factor_t w)
{
    sums = _mm_add_epi32(sums, _mm_madd_epi16(x.even, w.even));
    return _mm_add_epi32(sums, _mm_madd_epi16(x.odd, w.odd));
}

#elif defined(__ARM_FEATURE_DOTPROD) && defined(__aarch64__) && !defined(__ARM_BIG_ENDIAN) &&           \
    !defined(HTVM_NATIVE_PLAIN)
#include <arm_neon.h>
#define HTVM_NATIVE_KIND "Arm dot products"
#define HTVM_LANES 4
#define HTVM_VECTORS 6
#define HTVM_LIFTED 0
typedef int32x4_t htvm_sums_t;
typedef int8x16_t htvm_data_t, htvm_factor_t;

HTVM_NATIVE_INLINE htvm_sums_t htvm_sums_of(int32_t value) { return vdupq_n_s32(value); }
HTVM_NATIVE_INLINE void htvm_sums_store(int32_t *to, htvm_sums_t sums) { vst1q_s32(to, sums); }
HTVM_NATIVE_INLINE htvm_data_t htvm_data(const uint32_t *words)
{
    return vreinterpretq_s8_u32(vld1q_u32(words));
}
HTVM_NATIVE_INLINE htvm_factor_t htvm_factor(uint32_t word)
{
    return vreinterpretq_s8_u32(vdupq_n_u32(word));
}
HTVM_NATIVE_INLINE htvm_sums_t htvm_dot(htvm_sums_t sums, htvm_data_t x, htvm_factor_t w)
{
    return vdotq_s32(sums, x, w);
}

#else
#define HTVM_NATIVE_KIND "plain C"
#define HTVM_LANES 8
#define HTVM_VECTORS 1
#define HTVM_LIFTED 0
typedef struct {
    uint32_t lane[HTVM_LANES];
} htvm_sums_t;
/* The bytes of each word, in order, as int16. */
typedef struct {
    int16_t byte[4][HTVM_LANES];
} htvm_data_t;
typedef struct {
    int16_t byte[4];
} htvm_factor_t;

HTVM_NATIVE_INLINE int16_t htvm_byte_of(uint32_t word, uint32_t number)
{
    return (int8_t)(uint8_t)(word >> (8u * number));
}
HTVM_NATIVE_INLINE htvm_sums_t htvm_sums_of(int32_t value)
{
    htvm_sums_t sums;
    for (uint32_t i = 0; i < HTVM_LANES; i++) {
        sums.lane[i] = (uint32_t)value;
    }
    return sums;
}
HTVM_NATIVE_INLINE void htvm_sums_store(int32_t *to, htvm_sums_t sums)
{
    for (uint32_t i = 0; i < HTVM_LANES; i++) {
        to[i] = (int32_t)sums.lane[i];
    }
}
HTVM_NATIVE_INLINE htvm_data_t htvm_data(const uint32_t *words)
{
    htvm_data_t x;
    for (uint32_t number = 0; number < 4; number++) {
        for (uint32_t i = 0; i < HTVM_LANES; i++) {
            x.byte[number][i] = htvm_byte_of(words[i], number);
        }
    }
    return x;
}
HTVM_NATIVE_INLINE htvm_factor_t htvm_factor(uint32_t word)
{
    htvm_factor_t w;
    for (uint32_t number = 0; number < 4; number++) {
        w.byte[number] = htvm_byte_of(word, number);
    }
    return w;
}
HTVM_NATIVE_INLINE htvm_sums_t htvm_dot(htvm_sums_t sums, htvm_data_t x, htvm_factor_t w)
{
    for (uint32_t number = 0; number < 4; number++) {
        for (uint32_t i = 0; i < HTVM_LANES; i++) {
            sums.lane[i] += (uint32_t)(x.byte[number][i] * w.byte[number]);
        }
    }
    return sums;
}
#endif

#endif
