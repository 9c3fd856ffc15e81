/* constant: net_dense_onnx_factors[2], int32: factors of dense_onnx, int32 2x1 */
/* constant: net_dense_tflite_bias[10], int32: bias of dense_tflite, int32 10 */
/* constant: net_dense_tflite_multiplier[1], int32: multiplier of dense_tflite, int32 1 */
/* constant: net_dense_tflite_shift[1], int32: shift of dense_tflite, int32 1 */
/* constant: net_dense_tflite_weight[120], int8: weight of dense_tflite, int8 12x10 */
/* constant: net_rows_constant_0[10], int32: constant_0 of rows, int32 10 */
/* constant: net_rows_constant_0_1[10], int32: constant_0_1 of rows, int32 10 */

/*
 * dense_tflite: matmul + add + tflite_requantize + add + clip + astype
 * int8 1x12 -> int8 1x10
 * not scheduled
 */
void net_dense_tflite(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict multiplier, const int32_t *restrict shift, int8_t *restrict out) {
  int32_t acc[10];
  for (int32_t i1 = 0; i1 < 10; ++i1) {
    for (int32_t k = 0; k < 12; ++k) {
      if (k == 0) {
        acc[i1] = 0;
      }
      acc[i1] = (acc[i1] + (((int32_t)in0[k]) * ((int32_t)weight[((k * 10) + i1)])));
    }
  }
  for (int32_t ax1 = 0; ax1 < 10; ++ax1) {
    acc[ax1] = (acc[ax1] + bias[ax1]);
  }
  for (int32_t i1_1 = 0; i1_1 < 10; ++i1_1) {
    acc[i1_1] = (((((int32_t)(((((int64_t)acc[i1_1]) * ((int64_t)multiplier[0])) + (int64_t)1073741824) >> (int64_t)31)) + ((int32_t)(((uint32_t)1) << ((uint32_t)((0 - shift[0]) - 1))))) - ((int32_t)(((int32_t)(((((int64_t)acc[i1_1]) * ((int64_t)multiplier[0])) + (int64_t)1073741824) >> (int64_t)31)) < 0))) >> (shift[0] * -1));
  }
  for (int32_t ax1_1 = 0; ax1_1 < 10; ++ax1_1) {
    acc[ax1_1] = (acc[ax1_1] + 3);
  }
  for (int32_t i1_2 = 0; i1_2 < 10; ++i1_2) {
    int32_t v0 = acc[i1_2];
    int32_t v1 = (v0) < (127) ? (v0) : (127);
    acc[i1_2] = ((v1) > (-128) ? (v1) : (-128));
  }
  for (int32_t i1_3 = 0; i1_3 < 10; ++i1_3) {
    out[i1_3] = ((int8_t)acc[i1_3]);
  }
}

/*
 * dense_onnx: matmul + add + onnx_requantize + add + clip + astype
 * int8 1x12 -> int8 1x10
 * not scheduled
 */
void net_dense_onnx(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict factors, int8_t *restrict out) {
  int32_t acc[10];
  for (int32_t i1 = 0; i1 < 10; ++i1) {
    for (int32_t k = 0; k < 12; ++k) {
      if (k == 0) {
        acc[i1] = 0;
      }
      acc[i1] = (acc[i1] + (((int32_t)in0[k]) * ((int32_t)weight[((k * 10) + i1)])));
    }
  }
  for (int32_t ax1 = 0; ax1 < 10; ++ax1) {
    acc[ax1] = (acc[ax1] + bias[ax1]);
  }
  for (int32_t i1_1 = 0; i1_1 < 10; ++i1_1) {
    int64_t condval;
    if ((int64_t)0 <= ((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) - ((int64_t)(((uint64_t)(((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) << ((uint64_t)(((int64_t)factors[1]) - (int64_t)1)))))) {
      condval = ((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) - ((int64_t)(((uint64_t)(((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) << ((uint64_t)(((int64_t)factors[1]) - (int64_t)1)))));
    } else {
      condval = (((int64_t)(((uint64_t)(((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) << ((uint64_t)(((int64_t)factors[1]) - (int64_t)1)))) - (((int64_t)acc[i1_1]) * ((int64_t)factors[0])));
    }
    int64_t v0 = condval - (int64_t)1;
    int64_t v1 = (int64_t)25 - ((int64_t)factors[1]);
    int64_t v2 = ((int64_t)factors[1]) - (int64_t)25;
    int64_t v3 = (int64_t)0;
    int64_t v4 = (int64_t)0;
    int64_t v5 = (int64_t)0;
    int64_t condval_1;
    if ((int64_t)0 <= (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) {
      condval_1 = (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1);
    } else {
      condval_1 = ((int64_t)0 - (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1));
    }
    int64_t v6 = (int64_t)0;
    int64_t v7 = (int64_t)0;
    int64_t v8 = (int64_t)0;
    int64_t v9 = (int64_t)0;
    int64_t v10 = (int64_t)0;
    int64_t v11 = (int64_t)0;
    int64_t condval_2;
    if ((int64_t)0 <= (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) {
      condval_2 = (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1);
    } else {
      condval_2 = ((int64_t)0 - (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1));
    }
    int64_t v12 = (int64_t)0;
    int64_t v13 = (int64_t)0;
    int64_t v14 = (int64_t)0;
    int64_t condval_3;
    if ((int64_t)0 <= (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) {
      condval_3 = (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1);
    } else {
      condval_3 = ((int64_t)0 - (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1));
    }
    int64_t v15 = (int64_t)0;
    int64_t v16 = (int64_t)0;
    int64_t v17 = (int64_t)0;
    int64_t v18 = (int64_t)0;
    int64_t v19 = (int64_t)0;
    int64_t v20 = (int64_t)0;
    int64_t condval_4;
    if ((int64_t)0 <= (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) {
      condval_4 = (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1);
    } else {
      condval_4 = ((int64_t)0 - (((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1));
    }
    acc[i1_1] = ((int32_t)((((((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1) >> (int64_t)1) + (((((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1) >> (int64_t)1) & (((int64_t)((((int64_t)(((uint64_t)((v0) > (v3) ? (v0) : (v3))) << ((uint64_t)((v1) > (v4) ? (v1) : (v4))))) >> ((v2) > (v5) ? (v2) : (v5))) < condval_1)) & ((int64_t)((((int64_t)(((uint64_t)((v0) > (v6) ? (v0) : (v6))) << ((uint64_t)((v1) > (v7) ? (v1) : (v7))))) >> ((v2) > (v8) ? (v2) : (v8))) < ((((int64_t)(((uint64_t)((v0) > (v9) ? (v0) : (v9))) << ((uint64_t)((v1) > (v10) ? (v1) : (v10))))) >> ((v2) > (v11) ? (v2) : (v11))) ^ condval_2)))))) + (((int64_t)((int64_t)0 < ((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) - ((int64_t)(((uint64_t)(((((int64_t)acc[i1_1]) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) << ((uint64_t)(((int64_t)factors[1]) - (int64_t)1))))))) & ((((int64_t)((((int64_t)(((uint64_t)((v0) > (v12) ? (v0) : (v12))) << ((uint64_t)((v1) > (v13) ? (v1) : (v13))))) >> ((v2) > (v14) ? (v2) : (v14))) < condval_3)) & ((int64_t)((((int64_t)(((uint64_t)((v0) > (v15) ? (v0) : (v15))) << ((uint64_t)((v1) > (v16) ? (v1) : (v16))))) >> ((v2) > (v17) ? (v2) : (v17))) < ((((int64_t)(((uint64_t)((v0) > (v18) ? (v0) : (v18))) << ((uint64_t)((v1) > (v19) ? (v1) : (v19))))) >> ((v2) > (v20) ? (v2) : (v20))) ^ condval_4)))) ^ (int64_t)1))));
  }
  for (int32_t ax1_1 = 0; ax1_1 < 10; ++ax1_1) {
    acc[ax1_1] = (acc[ax1_1] + 7);
  }
  for (int32_t i1_2 = 0; i1_2 < 10; ++i1_2) {
    int32_t v21 = acc[i1_2];
    int32_t v22 = (v21) < (127) ? (v21) : (127);
    acc[i1_2] = ((v22) > (-128) ? (v22) : (-128));
  }
  for (int32_t i1_3 = 0; i1_3 < 10; ++i1_3) {
    out[i1_3] = ((int8_t)acc[i1_3]);
  }
}

/*
 * rows: matmul + add + multiply + add + right_shift + clip + astype
 * int8 4x12 -> int8 4x10
 * not scheduled
 */
void net_rows(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict constant_0, const int32_t *restrict constant_0_1, int8_t *restrict out) {
  int32_t acc[40];
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 10; ++i1) {
      for (int32_t k = 0; k < 12; ++k) {
        int32_t t1 = ((i0 * 10) + i1);
        if (k == 0) {
          acc[t1] = 0;
        }
        acc[t1] = (acc[t1] + (((int32_t)in0[((i0 * 12) + k)]) * ((int32_t)weight[((k * 10) + i1)])));
      }
    }
  }
  for (int32_t ax0 = 0; ax0 < 4; ++ax0) {
    for (int32_t ax1 = 0; ax1 < 10; ++ax1) {
      int32_t t2 = ((ax0 * 10) + ax1);
      acc[t2] = (acc[t2] + bias[ax1]);
    }
  }
  for (int32_t ax0_1 = 0; ax0_1 < 4; ++ax0_1) {
    for (int32_t ax1_1 = 0; ax1_1 < 10; ++ax1_1) {
      int32_t t3 = ((ax0_1 * 10) + ax1_1);
      acc[t3] = (acc[t3] * constant_0[ax1_1]);
    }
  }
  for (int32_t ax0_2 = 0; ax0_2 < 4; ++ax0_2) {
    for (int32_t ax1_2 = 0; ax1_2 < 10; ++ax1_2) {
      int32_t t4 = ((ax0_2 * 10) + ax1_2);
      acc[t4] = (acc[t4] + 1000);
    }
  }
  for (int32_t ax0_3 = 0; ax0_3 < 4; ++ax0_3) {
    for (int32_t ax1_3 = 0; ax1_3 < 10; ++ax1_3) {
      int32_t t5 = ((ax0_3 * 10) + ax1_3);
      acc[t5] = (acc[t5] >> constant_0_1[ax1_3]);
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    for (int32_t i1_1 = 0; i1_1 < 10; ++i1_1) {
      int32_t t6 = ((i0_1 * 10) + i1_1);
      int32_t v0 = acc[t6];
      int32_t v1 = (v0) < (127) ? (v0) : (127);
      acc[t6] = ((v1) > (-128) ? (v1) : (-128));
    }
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    for (int32_t i1_2 = 0; i1_2 < 10; ++i1_2) {
      int32_t t7 = ((i0_2 * 10) + i1_2);
      out[t7] = ((int8_t)acc[t7]);
    }
  }
}
