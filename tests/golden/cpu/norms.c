/* constant: net_layer_norm_weight[12], int32: weight of layer_norm, int32 12 */

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

/*
 * l2_normalization: tflite_l2_normalization
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_l2_normalization(const int8_t *restrict in0, int8_t *restrict out) {
  int32_t total[4];
  int32_t pairs[4];
  int32_t newton4[4];
  int32_t narrow0;
  int32_t narrow1;
  int32_t narrow5;
  int32_t narrow6;
  int32_t narrow10;
  int32_t narrow11;
  int32_t narrow15;
  int32_t narrow16;
  int32_t narrow20;
  int32_t narrow21;
  int32_t wide0;
  int32_t narrow1_ptr_1;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    total[i0] = 0;
    for (int32_t k = 0; k < 12; ++k) {
      int32_t t1 = ((i0 * 12) + k);
      total[i0] = (total[i0] + ((((int32_t)in0[t1]) + 3) * (((int32_t)in0[t1]) + 3)));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    pairs[i0_1] = (((((((((((((((((int32_t)(total[i0_1] < 536870912)) + ((int32_t)(total[i0_1] < 134217728))) + ((int32_t)(total[i0_1] < 33554432))) + ((int32_t)(total[i0_1] < 8388608))) + ((int32_t)(total[i0_1] < 2097152))) + ((int32_t)(total[i0_1] < 524288))) + ((int32_t)(total[i0_1] < 131072))) + ((int32_t)(total[i0_1] < 32768))) + ((int32_t)(total[i0_1] < 8192))) + ((int32_t)(total[i0_1] < 2048))) + ((int32_t)(total[i0_1] < 512))) + ((int32_t)(total[i0_1] < 128))) + ((int32_t)(total[i0_1] < 32))) + ((int32_t)(total[i0_1] < 8))) + ((int32_t)(total[i0_1] < 2))) - 1);
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    int32_t condval;
    if (pairs[i0_2] < 0) {
      int32_t v0 = total[i0_2];
      condval = (((v0) > (1) ? (v0) : (1)) >> 2);
    } else {
      int32_t v1 = total[i0_2];
      int32_t v2 = pairs[i0_2];
      condval = ((int32_t)(((uint32_t)((v1) > (1) ? (v1) : (1))) << ((uint32_t)(((v2) < (14) ? (v2) : (14)) * 2))));
    }
    total[i0_2] = (((condval >> 1) + 1) >> 1);
  }
  for (int32_t i0_3 = 0; i0_3 < 4; ++i0_3) {
    narrow0 = 50331648;
    narrow1 = 33554432;
    narrow1 = ((int32_t)(((((int64_t)narrow1) * (int64_t)268435456) + (int64_t)1073741824) >> (int64_t)31));
    narrow1 = ((int32_t)((((((int64_t)total[i0_3]) * ((int64_t)narrow1)) * (int64_t)64) + (int64_t)1073741824) >> (int64_t)31));
    narrow0 = ((narrow0 * 8) - (narrow1 * 8));
    narrow5 = ((int32_t)(((((int64_t)narrow0) * (int64_t)402653184) + (int64_t)1073741824) >> (int64_t)31));
    narrow6 = ((int32_t)(((((int64_t)narrow0) * ((int64_t)narrow0)) + (int64_t)1073741824) >> (int64_t)31));
    narrow6 = ((int32_t)(((((int64_t)narrow6) * ((int64_t)narrow0)) + (int64_t)1073741824) >> (int64_t)31));
    narrow6 = ((int32_t)((((((int64_t)total[i0_3]) * ((int64_t)narrow6)) * (int64_t)64) + (int64_t)1073741824) >> (int64_t)31));
    narrow5 = ((narrow5 * 8) - (narrow6 * 8));
    narrow10 = ((int32_t)(((((int64_t)narrow5) * (int64_t)402653184) + (int64_t)1073741824) >> (int64_t)31));
    narrow11 = ((int32_t)(((((int64_t)narrow5) * ((int64_t)narrow5)) + (int64_t)1073741824) >> (int64_t)31));
    narrow11 = ((int32_t)(((((int64_t)narrow11) * ((int64_t)narrow5)) + (int64_t)1073741824) >> (int64_t)31));
    narrow11 = ((int32_t)((((((int64_t)total[i0_3]) * ((int64_t)narrow11)) * (int64_t)64) + (int64_t)1073741824) >> (int64_t)31));
    narrow10 = ((narrow10 * 8) - (narrow11 * 8));
    narrow15 = ((int32_t)(((((int64_t)narrow10) * (int64_t)402653184) + (int64_t)1073741824) >> (int64_t)31));
    narrow16 = ((int32_t)(((((int64_t)narrow10) * ((int64_t)narrow10)) + (int64_t)1073741824) >> (int64_t)31));
    narrow16 = ((int32_t)(((((int64_t)narrow16) * ((int64_t)narrow10)) + (int64_t)1073741824) >> (int64_t)31));
    narrow16 = ((int32_t)((((((int64_t)total[i0_3]) * ((int64_t)narrow16)) * (int64_t)64) + (int64_t)1073741824) >> (int64_t)31));
    narrow15 = ((narrow15 * 8) - (narrow16 * 8));
    narrow20 = ((int32_t)(((((int64_t)narrow15) * (int64_t)402653184) + (int64_t)1073741824) >> (int64_t)31));
    narrow21 = ((int32_t)(((((int64_t)narrow15) * ((int64_t)narrow15)) + (int64_t)1073741824) >> (int64_t)31));
    narrow21 = ((int32_t)(((((int64_t)narrow21) * ((int64_t)narrow15)) + (int64_t)1073741824) >> (int64_t)31));
    narrow21 = ((int32_t)((((((int64_t)total[i0_3]) * ((int64_t)narrow21)) * (int64_t)64) + (int64_t)1073741824) >> (int64_t)31));
    newton4[i0_3] = ((narrow20 * 8) - (narrow21 * 8));
  }
  for (int32_t i0_4 = 0; i0_4 < 4; ++i0_4) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t2 = ((i0_4 * 12) + i1);
      int32_t v3 = pairs[i0_4] - 4;
      int32_t v4 = (v3) < (10) ? (v3) : (10);
      wide0 = ((int32_t)(((uint32_t)((((int64_t)((int32_t)in0[t2])) + (int64_t)3) & (int64_t)4294967295)) << ((uint32_t)((v4) > (0) ? (v4) : (0)))));
      narrow1_ptr_1 = ((int32_t)(((((int64_t)newton4[i0_4]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31));
      wide0 = ((int32_t)(((((int64_t)wide0) * ((int64_t)narrow1_ptr_1)) + (int64_t)1073741824) >> (int64_t)31));
      int32_t v5 = pairs[i0_4];
      int32_t v6 = 4 - ((v5) > (-1) ? (v5) : (-1));
      int32_t v7 = (wide0 >> ((v6) > (0) ? (v6) : (0))) + ((int32_t)(((((int32_t)(((uint32_t)1 << ((uint32_t)((v6) > (0) ? (v6) : (0)))) - (uint32_t)1)) >> 1) + ((int32_t)(wide0 < 0))) < (wide0 & ((int32_t)(((uint32_t)1 << ((uint32_t)((v6) > (0) ? (v6) : (0)))) - (uint32_t)1)))));
      int32_t v8 = (v7) < (127) ? (v7) : (127);
      out[t2] = ((int8_t)((v8) > (-128) ? (v8) : (-128)));
    }
  }
}
