/* constant: net_matmul_rescale_add[1], int32: add of matmul, rescale, int32 1x1 */
/* constant: net_matmul_rescale_mul[4], int32: mul of matmul, rescale, int32 4x1 */

/*
 * matmul, rescale: integer_matmul + rescale
 * int8 4x12 -> int8 4x4
 * element-wise operators inlined
 */
void net_matmul_rescale(const int8_t *restrict in0, const int8_t *restrict in1, const int32_t *restrict mul, const int32_t *restrict add, int8_t *restrict out) {
  int32_t acc;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 4; ++i1) {
      acc = 0;
      for (int32_t ax2 = 0; ax2 < 12; ++ax2) {
        acc = (acc + (((int32_t)in0[((i0 * 12) + ax2)]) * ((int32_t)in1[((i1 * 12) + ax2)])));
      }
      int64_t v0 = ((((int64_t)acc) * ((int64_t)mul[i0])) + ((int64_t)add[0])) >> (int64_t)14;
      int64_t v1 = (int64_t)127;
      int64_t v2 = (v0) < (v1) ? (v0) : (v1);
      int64_t v3 = (int64_t)-128;
      out[((i0 * 4) + i1)] = ((int8_t)((v2) > (v3) ? (v2) : (v3)));
    }
  }
}

/*
 * combine: integer_combine
 * int8 4x12 -> int32 4x12
 * element-wise operators inlined
 */
void net_combine(const int8_t *restrict in0, const int8_t *restrict in1, int32_t *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      out[t1] = (((int32_t)in0[t1]) * ((int32_t)in1[t1]));
    }
  }
}

/*
 * mean: integer_mean
 * int8 4x12 -> int8 1x12
 * element-wise operators inlined
 */
void net_mean(const int8_t *restrict in0, int8_t *restrict out) {
  int32_t sums;
  for (int32_t i1 = 0; i1 < 12; ++i1) {
    sums = 0;
    for (int32_t ax2 = 0; ax2 < 4; ++ax2) {
      sums = (sums + ((int32_t)in0[((ax2 * 12) + i1)]));
    }
    out[i1] = ((int8_t)((sums + 2) >> 2));
  }
}

/*
 * total: integer_total
 * int8 4x12 -> int32 4x1
 * element-wise operators inlined
 */
void net_total(const int8_t *restrict in0, int32_t *restrict out) {
  int32_t sums;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    sums = 0;
    for (int32_t ax2 = 0; ax2 < 12; ++ax2) {
      sums = (sums + ((int32_t)in0[((i0 * 12) + ax2)]));
    }
    out[i0] = sums;
  }
}

/*
 * cast: cast
 * int8 4x12 -> int32 4x12
 * element-wise operators inlined
 */
void net_cast(const int8_t *restrict in0, int32_t *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      out[t1] = ((int32_t)in0[t1]);
    }
  }
}

/*
 * accumulate: accumulate
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_accumulate(const int8_t *restrict in0, const int8_t *restrict in1, int8_t *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      out[t1] = ((int8_t)((((((int32_t)in0[t1]) * 11) + (((int32_t)in1[t1]) * 11)) + 4) >> 5));
    }
  }
}
