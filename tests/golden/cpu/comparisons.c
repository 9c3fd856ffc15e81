/* constant: net_batch_matmul_multiplier[1], int32: multiplier of batch_matmul, int32 1 */
/* constant: net_bilinear_row_weights[8], int32: row_weights of bilinear, int32 2x4 */
/* constant: net_bilinear_rows[8], int32: rows of bilinear, int32 2x4 */
/* constant: net_squared_difference_multiplier[3], int32: multiplier of squared_difference, int32 3 */

/*
 * reduce_maximum: reduce_extreme
 * int8 4x12 -> int8 4x1
 * element-wise operators inlined
 */
void net_reduce_maximum(const int8_t *restrict in0, int8_t *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    out[i0] = (int8_t)-128;
    for (int32_t r1 = 0; r1 < 12; ++r1) {
      int8_t v0 = out[i0];
      int8_t v1 = in0[((i0 * 12) + r1)];
      out[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
}

/*
 * minimum: extreme
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_minimum(const int8_t *restrict in0, const int8_t *restrict in1, int8_t *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      int8_t v0 = in0[t1];
      int8_t v1 = in1[t1];
      out[t1] = ((v0) < (v1) ? (v0) : (v1));
    }
  }
}

/*
 * arg_maximum: arg_extreme
 * int8 4x12 -> int32 4
 * element-wise operators inlined
 */
void net_arg_maximum(const int8_t *restrict in0, int32_t *restrict out) {
  int32_t keys;
  int32_t narrow0;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    keys = -2147483648;
    for (int32_t ax1 = 0; ax1 < 12; ++ax1) {
      narrow0 = ax1;
      int32_t v0 = keys;
      int32_t v1 = ((((int32_t)in0[((i0 * 12) + ax1)]) * 12) + 1547) - narrow0;
      keys = ((v0) > (v1) ? (v0) : (v1));
    }
    out[i0] = (11 - ((keys % 12) + (12 & (0 - ((int32_t)((keys % 12) < 0))))));
  }
}

/*
 * bilinear: tflite_bilinear
 * int8 1x5x6x8 -> int8 1x4x4x8
 * element-wise operators inlined
 */
void net_bilinear(const int8_t *restrict in0, const int32_t *restrict rows, const int32_t *restrict columns, const int32_t *restrict row_weights, const int32_t *restrict column_weights, int8_t *restrict out) {
  int32_t sums;
  for (int32_t i1 = 0; i1 < 4; ++i1) {
    for (int32_t i2 = 0; i2 < 4; ++i2) {
      for (int64_t i3 = (int64_t)0; i3 < (int64_t)8; ++i3) {
        sums = 0;
        for (int32_t ax4 = 0; ax4 < 2; ++ax4) {
          for (int32_t ax5 = 0; ax5 < 2; ++ax5) {
            int32_t t1 = ((ax4 * 4) + i1);
            int32_t t2 = ((ax5 * 4) + i2);
            sums = (sums + ((((int32_t)in0[(((((int64_t)rows[t1]) * (int64_t)48) + (((int64_t)columns[t2]) * (int64_t)8)) + i3)]) * row_weights[t1]) * column_weights[t2]));
          }
        }
        out[(((((int64_t)i1) * (int64_t)32) + (((int64_t)i2) * (int64_t)8)) + i3)] = ((int8_t)(((sums - ((int32_t)(sums < 0))) + 524288) >> 20));
      }
    }
  }
}

/*
 * batch_matmul: tflite_matmul
 * int8 4x12 -> int8 4x4
 * element-wise operators inlined
 */
void net_batch_matmul(const int8_t *restrict in0, const int8_t *restrict in1, const int32_t *restrict multiplier, int8_t *restrict out) {
  int32_t sums;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 4; ++i1) {
      sums = 0;
      for (int32_t ax2 = 0; ax2 < 12; ++ax2) {
        sums = (sums + ((((int32_t)in0[((i0 * 12) + ax2)]) - 3) * (((int32_t)in1[((i1 * 12) + ax2)]) + 4)));
      }
      sums = ((int32_t)(((((int64_t)sums) * ((int64_t)multiplier[0])) + (int64_t)1073741824) >> (int64_t)31));
      int32_t t1 = ((int32_t)(((uint32_t)1 << (uint32_t)6) - (uint32_t)1));
      int32_t v0 = ((sums >> 6) + ((int32_t)(((t1 >> 1) + ((int32_t)(sums < 0))) < (sums & t1)))) + 5;
      int32_t v1 = (v0) < (127) ? (v0) : (127);
      out[((i0 * 4) + i1)] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
    }
  }
}

/*
 * squared_difference: tflite_binary
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_squared_difference(const int8_t *restrict in0, const int8_t *restrict in1, const int32_t *restrict multiplier, int8_t *restrict out) {
  int32_t narrow0;
  int32_t narrow1;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      narrow0 = ((int32_t)((((((int64_t)((int32_t)in0[t1])) + (int64_t)128) * ((int64_t)multiplier[0])) + (int64_t)8388608) >> (int64_t)24));
      narrow1 = ((int32_t)((((((int64_t)((int32_t)in1[t1])) - (int64_t)5) * ((int64_t)multiplier[1])) + (int64_t)8388608) >> (int64_t)24));
      narrow0 = (((((narrow0 - ((int32_t)(narrow0 < 0))) + 2) >> 2) - narrow1) * ((((narrow0 - ((int32_t)(narrow0 < 0))) + 2) >> 2) - narrow1));
      narrow0 = ((int32_t)(((((int64_t)narrow0) * ((int64_t)multiplier[2])) + (int64_t)1073741824) >> (int64_t)31));
      int32_t v0 = (((narrow0 - ((int32_t)(narrow0 < 0))) + 131072) >> 18) + 127;
      int32_t v1 = (v0) < (127) ? (v0) : (127);
      out[t1] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
    }
  }
}
