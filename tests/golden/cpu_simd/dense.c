/* constant: net_dense_onnx_factors[3], int32: factors of dense_onnx, int32 3x1 */
/* constant: net_dense_tflite_bias[10], int32: bias of dense_tflite, int32 10 */
/* constant: net_dense_tflite_multiplier[1], int32: multiplier of dense_tflite, int32 1 */
/* constant: net_dense_tflite_shift[1], int32: shift of dense_tflite, int32 1 */
/* constant: net_dense_tflite_weight[120], int8: weight of dense_tflite, int8 10x1x3x1x4 */
/* constant: net_rows_constant_0[10], int32: constant_0 of rows, int32 10 */
/* constant: net_rows_constant_0_1[10], int32: constant_0_1 of rows, int32 10 */
/* constant: net_rows_weight[120], int8: weight of rows, int8 2x1x3x5x4 */

/*
 * dense_tflite: matmul + add + tflite_requantize + add + clip + astype
 * int8 1x12 -> int8 1x10
 * register block of 1 rows x 6 channels, four products at once
 */
void net_dense_tflite(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict multiplier, const int32_t *restrict shift, int8_t *restrict out) {
  int32_t acc[6];
  for (int32_t kb = 0; kb < 2; ++kb) {
    int32_t v0 = kb * 6;
    int32_t t2 = ((v0) < (4) ? (v0) : (4));
    HTVM_UNROLL(6)
    for (int32_t j = 0; j < 6; ++j) {
      acc[j] = bias[(t2 + j)];
    }
    HTVM_UNROLL(3)
    for (int32_t c = 0; c < 3; ++c) {
      HTVM_UNROLL(6)
      for (int32_t ki = 0; ki < 6; ++ki) {
        int32_t t1 = (c * 4);
        acc[ki] = htvm_dot4(htvm_load4((&(in0[t1]))), htvm_load4((&(weight[(((t2 * 12) + (ki * 12)) + t1)]))), acc[ki]);
      }
    }
    HTVM_UNROLL(6)
    for (int32_t ki_1 = 0; ki_1 < 6; ++ki_1) {
      out[(t2 + ki_1)] = ((int8_t)htvm_clip((htvm_scale(acc[ki_1], ((uint32_t)multiplier[0]), ((uint32_t)shift[0])) + 3), -128, 127));
    }
  }
}

/*
 * dense_onnx: matmul + add + onnx_requantize + add + clip + astype
 * int8 1x12 -> int8 1x10
 * register block of 1 rows x 6 channels, four products at once
 */
void net_dense_onnx(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict factors, int8_t *restrict out) {
  int32_t acc[6];
  for (int32_t kb = 0; kb < 2; ++kb) {
    int32_t v0 = kb * 6;
    int32_t t2 = ((v0) < (4) ? (v0) : (4));
    HTVM_UNROLL(6)
    for (int32_t j = 0; j < 6; ++j) {
      acc[j] = bias[(t2 + j)];
    }
    HTVM_UNROLL(3)
    for (int32_t c = 0; c < 3; ++c) {
      HTVM_UNROLL(6)
      for (int32_t ki = 0; ki < 6; ++ki) {
        int32_t t1 = (c * 4);
        acc[ki] = htvm_dot4(htvm_load4((&(in0[t1]))), htvm_load4((&(weight[(((t2 * 12) + (ki * 12)) + t1)]))), acc[ki]);
      }
    }
    HTVM_UNROLL(6)
    for (int32_t ki_1 = 0; ki_1 < 6; ++ki_1) {
      out[(t2 + ki_1)] = ((int8_t)htvm_clip((htvm_float_product(acc[ki_1], factors[0], factors[1], factors[2]) + 7), -128, 127));
    }
  }
}

/*
 * rows: matmul + add + multiply + add + right_shift + clip + astype
 * int8 4x12 -> int8 4x10
 * register block of 2 rows x 5 channels, four products at once
 */
void net_rows(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict constant_0, const int32_t *restrict constant_0_1, int8_t *restrict out) {
  int32_t acc[10];
  for (int32_t rb = 0; rb < 2; ++rb) {
    for (int32_t kb = 0; kb < 2; ++kb) {
      int32_t t1 = (kb * 5);
      HTVM_UNROLL(2)
      for (int32_t i = 0; i < 2; ++i) {
        HTVM_UNROLL(5)
        for (int32_t j = 0; j < 5; ++j) {
          acc[((i * 5) + j)] = bias[(t1 + j)];
        }
      }
      HTVM_UNROLL(3)
      for (int32_t c = 0; c < 3; ++c) {
        HTVM_UNROLL(2)
        for (int32_t px = 0; px < 2; ++px) {
          HTVM_UNROLL(5)
          for (int32_t ki = 0; ki < 5; ++ki) {
            int32_t t2 = ((px * 5) + ki);
            acc[t2] = htvm_dot4(htvm_load4((&(in0[(((rb * 24) + (px * 12)) + (c * 4))]))), htvm_load4((&(weight[(((kb * 60) + (c * 20)) + (ki * 4))]))), acc[t2]);
          }
        }
      }
      HTVM_UNROLL(5)
      for (int32_t ki_1 = 0; ki_1 < 5; ++ki_1) {
        HTVM_UNROLL(2)
        for (int32_t px_1 = 0; px_1 < 2; ++px_1) {
          int32_t t3 = (t1 + ki_1);
          out[((((rb * 20) + (px_1 * 10)) + t1) + ki_1)] = ((int8_t)htvm_clip((((acc[((px_1 * 5) + ki_1)] * constant_0[t3]) + 1000) >> constant_0_1[t3]), -128, 127));
        }
      }
    }
  }
}
