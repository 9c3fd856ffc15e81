/* constant: net_onnx_add_factors[2], int64: factors of onnx_add, int64 2 */
/* constant: net_subtract_factors[2], int64: factors of subtract, int64 2 */
/* constant: net_subtract_figures[7], float32: figures of subtract, float32 7 */

/*
 * onnx_add: onnx_add
 * int8 1x5x6x8 -> int8 1x5x6x8
 * element-wise operators inlined
 */
void net_onnx_add(const int8_t *restrict in0, const int8_t *restrict in1, const int64_t *restrict factors, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        int64_t v0 = (((((((int64_t)((int32_t)in0[t1])) - (int64_t)1) * factors[0]) + ((((int64_t)((int32_t)in1[t1])) + (int64_t)9) * factors[1])) + (((((((int64_t)((int32_t)in0[t1])) - (int64_t)1) * factors[0]) + ((((int64_t)((int32_t)in1[t1])) + (int64_t)9) * factors[1])) >> (int64_t)25) & (int64_t)1)) + (int64_t)16777215) >> (int64_t)25;
        int64_t v1 = (int64_t)124;
        int64_t v2 = (v0) < (v1) ? (v0) : (v1);
        int64_t v3 = (int64_t)-131;
        out[t1] = ((int8_t)(((v2) > (v3) ? (v2) : (v3)) + (int64_t)3));
      }
    }
  }
}

/*
 * subtract: onnx_binary
 * int8 1x5x6x8 -> int8 1x5x6x8
 * element-wise operators inlined
 */
void net_subtract(const int8_t *restrict in0, const int8_t *restrict in1, const int64_t *restrict factors, const float *restrict figures, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        int64_t total0 = (((((int64_t)((int32_t)in0[t1])) - (int64_t)1) * factors[0]) - ((((int64_t)((int32_t)in1[t1])) + (int64_t)9) * factors[1]));
        int64_t low1 = ((total0 + (int64_t)33541939) >> (int64_t)26);
        int8_t condval;
        if (low1 == ((total0 + (int64_t)33566924) >> (int64_t)26)) {
          int64_t v0 = (int64_t)124;
          int64_t v1 = (low1) < (v0) ? (low1) : (v0);
          int64_t v2 = (int64_t)-131;
          condval = ((int8_t)(((v1) > (v2) ? (v1) : (v2)) + (int64_t)3));
        } else {
          float x0 = (((((float)(((int32_t)in0[t1]) - 1)) * figures[0]) - (((float)(((int32_t)in1[t1]) + 9)) * figures[1])) / figures[2]);
          float condval_1;
          if (x0 < figures[4]) {
            condval_1 = x0;
          } else {
            condval_1 = figures[4];
          }
          float upper1 = condval_1;
          float condval_2;
          if (figures[3] < upper1) {
            condval_2 = upper1;
          } else {
            condval_2 = figures[3];
          }
          float inside2 = condval_2;
          float near3 = ((inside2 + figures[5]) - figures[6]);
          int32_t v3 = ((int32_t)near3) + 3;
          int32_t v4 = (v3) < (127) ? (v3) : (127);
          condval = ((int8_t)((v4) > (-128) ? (v4) : (-128)));
        }
        out[t1] = condval;
      }
    }
  }
}
