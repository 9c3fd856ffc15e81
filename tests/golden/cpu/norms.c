/* constant: layer_norm_weight[12], int32: weight of layer_norm, int32 12 */

/*
 * layer_norm: integer_layer_norm
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_layer_norm(const int8_t *restrict in0, const int32_t *restrict weight, const int32_t *restrict bias, int8_t *restrict out) {
  int32_t middle[4];
  int32_t sums;
  int32_t squares[4];
  int32_t isqrt[4];
  int32_t narrow0;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    sums = 0;
    for (int32_t ax1 = 0; ax1 < 12; ++ax1) {
      sums = (sums + ((int32_t)in0[((i0 * 12) + ax1)]));
    }
    middle[i0] = (sums / 12);
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    squares[i0_1] = 0;
    for (int32_t k = 0; k < 12; ++k) {
      int32_t t1 = ((i0_1 * 12) + k);
      squares[i0_1] = (squares[i0_1] + ((((int32_t)in0[t1]) - middle[i0_1]) * (((int32_t)in0[t1]) - middle[i0_1])));
    }
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    isqrt[i0_2] = 0;
    for (int32_t r = 0; r < 255; ++r) {
      narrow0 = r;
      isqrt[i0_2] = (isqrt[i0_2] + ((int32_t)(((narrow0 + 1) * (narrow0 + 1)) <= ((squares[i0_2] / 12) + 1))));
    }
  }
  for (int32_t i0_3 = 0; i0_3 < 4; ++i0_3) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t2 = ((i0_3 * 12) + i1);
      int32_t v0 = ((((((int32_t)in0[t2]) - middle[i0_3]) * weight[i1]) / isqrt[i0_3]) + bias[i1]) >> 14;
      int32_t v1 = (v0) < (127) ? (v0) : (127);
      out[t2] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
    }
  }
}

/*
 * rms_norm: integer_rms_norm
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_rms_norm(const int8_t *restrict in0, const int32_t *restrict weight, int8_t *restrict out) {
  int32_t squares[4];
  int32_t isqrt[4];
  int32_t narrow0;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    squares[i0] = 0;
    for (int32_t k = 0; k < 12; ++k) {
      int32_t t1 = ((i0 * 12) + k);
      squares[i0] = (squares[i0] + (((int32_t)in0[t1]) * ((int32_t)in0[t1])));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    isqrt[i0_1] = 0;
    for (int32_t r = 0; r < 128; ++r) {
      narrow0 = r;
      isqrt[i0_1] = (isqrt[i0_1] + ((int32_t)(((narrow0 + 1) * (narrow0 + 1)) <= ((squares[i0_1] / 12) + 1))));
    }
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t2 = ((i0_2 * 12) + i1);
      int32_t v0 = ((((int32_t)in0[t2]) * weight[i1]) / isqrt[i0_2]) >> 12;
      int32_t v1 = (v0) < (127) ? (v0) : (127);
      out[t2] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
    }
  }
}

/*
 * affine_norm: integer_affine_norm
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_affine_norm(const int8_t *restrict in0, const int32_t *restrict weight, const int32_t *restrict bias, int8_t *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      int32_t v0 = (((((int32_t)in0[t1]) * weight[i1]) * 37) + (bias[i1] * 37)) >> 13;
      int32_t v1 = (v0) < (127) ? (v0) : (127);
      out[t1] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
    }
  }
}
