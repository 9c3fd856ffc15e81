/* constant: add_b[8], int16: b of add, int16 8 */
/* constant: add_multiplier[3], int32: multiplier of add, int32 3 */
/* constant: conv_bias[6], int64: bias of conv, int64 6 */
/* constant: conv_multipliers[1], int32: multipliers of conv, int32 1 */
/* constant: conv_shifts[1], int32: shifts of conv, int32 1 */
/* constant: conv_weight[432], int8: weight of conv, int8 6x3x3x8 */
/* constant: leaky_multipliers[2], int32: multipliers of leaky, int32 2 */

/*
 * conv: wide_conv2d
 * int16 1x5x6x8 -> int16 1x2x4x6
 * element-wise operators inlined
 */
void net_conv(const int16_t *restrict in0, const int8_t *restrict weight, const int64_t *restrict bias, const int32_t *restrict multipliers, const int32_t *restrict shifts, int16_t *restrict out) {
  int32_t sums;
  for (int32_t y = 0; y < 2; ++y) {
    for (int32_t x = 0; x < 4; ++x) {
      for (int32_t o = 0; o < 6; ++o) {
        sums = 0;
        for (int32_t ax4 = 0; ax4 < 3; ++ax4) {
          for (int32_t ax5 = 0; ax5 < 3; ++ax5) {
            for (int32_t ax6 = 0; ax6 < 8; ++ax6) {
              int32_t t1 = (ax5 * 8);
              sums = (sums + (((int32_t)in0[(((((y * 96) + (ax4 * 48)) + (x * 8)) + t1) + ax6)]) * ((int32_t)weight[((((o * 72) + (ax4 * 24)) + t1) + ax6)])));
            }
          }
        }
        int64_t v0 = (((((int64_t)sums) + bias[o]) * ((int64_t)multipliers[0])) + (int64_t)8388608) >> (int64_t)24;
        int64_t v1 = (int64_t)32767;
        int64_t v2 = (v0) < (v1) ? (v0) : (v1);
        int64_t v3 = (int64_t)-32768;
        out[(((y * 24) + (x * 6)) + o)] = ((int16_t)((v2) > (v3) ? (v2) : (v3)));
      }
    }
  }
}

/*
 * leaky: piecewise_rescale
 * int16 1x5x6x8 -> int16 1x5x6x8
 * element-wise operators inlined
 */
void net_leaky(const int16_t *restrict in0, const int32_t *restrict multipliers, int16_t *restrict out) {
  int32_t wide0;
  int32_t narrow2;
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        wide0 = ((int32_t)(((uint32_t)(((int64_t)((int32_t)in0[t1])) & (int64_t)4294967295)) << (uint32_t)1));
        wide0 = ((int32_t)(((((int64_t)wide0) * ((int64_t)multipliers[0])) + (int64_t)1073741824) >> (int64_t)31));
        narrow2 = ((int32_t)(((((int64_t)((int32_t)in0[t1])) * ((int64_t)multipliers[1])) + (int64_t)1073741824) >> (int64_t)31));
        int32_t t2 = ((int32_t)(((uint32_t)1 << (uint32_t)3) - (uint32_t)1));
        int32_t condval;
        if (0 <= ((int32_t)in0[t1])) {
          condval = wide0;
        } else {
          condval = ((0 - (narrow2 >> 3)) - ((int32_t)(((t2 >> 1) + ((int32_t)(narrow2 < 0))) < (narrow2 & t2))));
        }
        int32_t v0 = (condval) < (32767) ? (condval) : (32767);
        out[t1] = ((int16_t)((v0) > (-32768) ? (v0) : (-32768)));
      }
    }
  }
}

/*
 * add: tflite_binary
 * int16 1x5x6x8 -> int16 1x5x6x8
 * element-wise operators inlined
 */
void net_add(const int16_t *restrict in0, const int16_t *restrict b, const int32_t *restrict multiplier, int16_t *restrict out) {
  int32_t narrow0;
  int32_t narrow2;
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        narrow0 = ((int32_t)(((((int64_t)((int32_t)in0[t1])) * ((int64_t)multiplier[0])) + (int64_t)32768) >> (int64_t)16));
        narrow0 = (((narrow0 + (narrow0 >> 31)) + 2) >> 2);
        narrow2 = ((int32_t)(((((int64_t)((int32_t)b[i3])) * ((int64_t)multiplier[1])) + (int64_t)32768) >> (int64_t)16));
        narrow0 = ((int32_t)((((((int64_t)narrow0) + ((int64_t)narrow2)) * ((int64_t)multiplier[2])) + (int64_t)1073741824) >> (int64_t)31));
        out[t1] = ((int16_t)(((narrow0 + (narrow0 >> 31)) + 32768) >> 16));
      }
    }
  }
}
