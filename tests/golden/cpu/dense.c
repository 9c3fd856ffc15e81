/* constant: net_dense_onnx_factors[3], int32: factors of dense_onnx, int32 3x1 */
/* constant: net_dense_tflite_bias[10], int32: bias of dense_tflite, int32 10 */
/* constant: net_dense_tflite_multiplier[1], int32: multiplier of dense_tflite, int32 1 */
/* constant: net_dense_tflite_shift[1], int32: shift of dense_tflite, int32 1 */
/* constant: net_dense_tflite_weight[120], int8: weight of dense_tflite, int8 12x10 */
/* constant: net_rows_constant_0[10], int32: constant_0 of rows, int32 10 */
/* constant: net_rows_constant_0_1[10], int32: constant_0_1 of rows, int32 10 */

/*
 * dense_tflite: matmul + add + tflite_requantize + add + clip + astype
 * int8 1x12 -> int8 1x10
 * register block of 1 rows x 5 channels
 */
void net_dense_tflite(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict multiplier, const int32_t *restrict shift, int8_t *restrict out) {
  int32_t acc[5];
  int32_t wide0;
  int32_t narrow1;
  for (int32_t kb = 0; kb < 2; ++kb) {
    HTVM_UNROLL(5)
    for (int32_t j = 0; j < 5; ++j) {
      acc[j] = 0;
    }
    int32_t t1 = (kb * 5);
    HTVM_UNROLL(6)
    for (int32_t c = 0; c < 12; ++c) {
      HTVM_UNROLL(5)
      for (int32_t ki = 0; ki < 5; ++ki) {
        acc[ki] = (acc[ki] + (((int32_t)in0[c]) * ((int32_t)weight[(((c * 10) + t1) + ki)])));
      }
    }
    HTVM_UNROLL(5)
    for (int32_t ki_1 = 0; ki_1 < 5; ++ki_1) {
      int32_t t2 = (t1 + ki_1);
      wide0 = (acc[ki_1] + bias[t2]);
      narrow1 = ((int32_t)((((int64_t)wide0) * ((int64_t)((uint32_t)multiplier[0]))) >> (int64_t)32));
      wide0 = ((int32_t)(((((int64_t)wide0) * ((int64_t)((uint32_t)multiplier[0]))) >> (int64_t)31) & (int64_t)1));
      int32_t v0 = (((((narrow1 + wide0) - ((int32_t)((narrow1 + wide0) < 0))) >> shift[0]) + 1) >> 1) + 3;
      int32_t v1 = (v0) < (127) ? (v0) : (127);
      out[t2] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
    }
  }
}

/*
 * dense_onnx: matmul + add + onnx_requantize + add + clip + astype
 * int8 1x12 -> int8 1x10
 * register block of 1 rows x 5 channels
 */
void net_dense_onnx(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict factors, int8_t *restrict out) {
  int32_t acc[5];
  for (int32_t kb = 0; kb < 2; ++kb) {
    HTVM_UNROLL(5)
    for (int32_t j = 0; j < 5; ++j) {
      acc[j] = 0;
    }
    int32_t t1 = (kb * 5);
    HTVM_UNROLL(6)
    for (int32_t c = 0; c < 12; ++c) {
      HTVM_UNROLL(5)
      for (int32_t ki = 0; ki < 5; ++ki) {
        acc[ki] = (acc[ki] + (((int32_t)in0[c]) * ((int32_t)weight[(((c * 10) + t1) + ki)])));
      }
    }
    HTVM_UNROLL(5)
    for (int32_t ki_1 = 0; ki_1 < 5; ++ki_1) {
      int32_t t2 = (t1 + ki_1);
      int32_t v0 = htvm_float_product((acc[ki_1] + bias[t2]), factors[0], factors[1], factors[2]) + 7;
      int32_t v1 = (v0) < (127) ? (v0) : (127);
      out[t2] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
    }
  }
}

/*
 * rows: matmul + add + multiply + add + right_shift + clip + astype
 * int8 4x12 -> int8 4x10
 * register block of 4 rows x 2 channels
 */
void net_rows(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict constant_0, const int32_t *restrict constant_0_1, int8_t *restrict out) {
  int32_t acc[8];
  for (int32_t kb = 0; kb < 5; ++kb) {
    HTVM_UNROLL(4)
    for (int32_t i = 0; i < 4; ++i) {
      HTVM_UNROLL(2)
      for (int32_t j = 0; j < 2; ++j) {
        acc[((i * 2) + j)] = 0;
      }
    }
    int32_t t1 = (kb * 2);
    HTVM_UNROLL(6)
    for (int32_t c = 0; c < 12; ++c) {
      HTVM_UNROLL(4)
      for (int32_t px = 0; px < 4; ++px) {
        HTVM_UNROLL(2)
        for (int32_t ki = 0; ki < 2; ++ki) {
          int32_t t2 = ((px * 2) + ki);
          acc[t2] = (acc[t2] + (((int32_t)in0[((px * 12) + c)]) * ((int32_t)weight[(((c * 10) + t1) + ki)])));
        }
      }
    }
    HTVM_UNROLL(4)
    for (int32_t px_1 = 0; px_1 < 4; ++px_1) {
      HTVM_UNROLL(2)
      for (int32_t ki_1 = 0; ki_1 < 2; ++ki_1) {
        int32_t t3 = (t1 + ki_1);
        int32_t v0 = (((acc[((px_1 * 2) + ki_1)] + bias[t3]) * constant_0[t3]) + 1000) >> constant_0_1[t3];
        int32_t v1 = (v0) < (127) ? (v0) : (127);
        out[(((px_1 * 10) + t1) + ki_1)] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
      }
    }
  }
}
