/* constant: net_add_b[8], int16: b of add, int16 8 */
/* constant: net_add_multiplier[3], int32: multiplier of add, int32 3 */
/* constant: net_batch_matmul_multiplier[1], int32: multiplier of batch_matmul, int32 1 */
/* constant: net_conv_bias[6], int64: bias of conv, int64 6 */
/* constant: net_conv_in_torch_addends[1], int64: addends of conv_in_torch, int64 1 */
/* constant: net_conv_in_torch_multipliers[1], int32: multipliers of conv_in_torch, int32 1 */
/* constant: net_conv_multipliers[1], int32: multipliers of conv, int32 1 */
/* constant: net_conv_weight[432], int8: weight of conv, int8 6x3x3x8 */
/* constant: net_leaky_multipliers[2], int32: multipliers of leaky, int32 2 */
/* constant: net_logistic_curve[256], int16: curve of logistic, int16 256 */
/* constant: net_mean_multiplier[1], int32: multiplier of mean, int32 1 */
/* constant: net_prelu_slopes[8], int32: slopes of prelu, int32 8 */
/* constant: net_softmax_exponential[513], int16: exponential of softmax, int16 513 */
/* constant: net_softmax_multiplier[1], int32: multiplier of softmax, int32 1 */
/* constant: net_softmax_reciprocal[513], int16: reciprocal of softmax, int16 513 */

/*
 * conv: wide_conv2d
 * int16 1x5x6x8 -> int16 1x2x4x6
 * element-wise operators inlined
 */
void net_conv(const int16_t *restrict in0, const int8_t *restrict weight, const int64_t *restrict bias, const int32_t *restrict multipliers, int16_t *restrict out) {
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
 * conv_in_torch: wide_conv2d
 * int16 1x5x6x8 -> int16 1x3x4x6
 * element-wise operators inlined
 */
void net_conv_in_torch(const int16_t *restrict in0, const int8_t *restrict weight, const int64_t *restrict bias, const int32_t *restrict multipliers, const int64_t *restrict addends, int16_t *restrict out) {
  int32_t sums;
  for (int32_t y = 0; y < 3; ++y) {
    for (int32_t x = 0; x < 4; ++x) {
      for (int32_t o = 0; o < 6; ++o) {
        sums = 0;
        for (int32_t ax4 = 0; ax4 < 3; ++ax4) {
          for (int32_t ax5 = 0; ax5 < 3; ++ax5) {
            for (int32_t ax6 = 0; ax6 < 8; ++ax6) {
              int32_t t1 = (ax5 * 8);
              sums = (sums + (((int32_t)in0[(((((y * 48) + (ax4 * 48)) + (x * 8)) + t1) + ax6)]) * ((int32_t)weight[((((o * 72) + (ax4 * 24)) + t1) + ax6)])));
            }
          }
        }
        int64_t v0 = ((((((((int64_t)sums) + bias[o]) >> (int64_t)16) * ((int64_t)multipliers[0])) + (addends[0] >> (int64_t)16)) + (((((((int64_t)sums) + bias[o]) & (int64_t)65535) * ((int64_t)multipliers[0])) + (addends[0] & (int64_t)65535)) >> (int64_t)16)) >> (int64_t)35) + (int64_t)3;
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
 * prelu: piecewise_rescale
 * int16 1x5x6x8 -> int16 1x5x6x8
 * element-wise operators inlined
 */
void net_prelu(const int16_t *restrict in0, const int32_t *restrict multipliers, const int32_t *restrict slopes, int16_t *restrict out) {
  int32_t wide0;
  int32_t wide2;
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        wide0 = ((int32_t)(((uint32_t)(((int64_t)((int32_t)in0[t1])) & (int64_t)4294967295)) << (uint32_t)1));
        wide0 = ((int32_t)(((((int64_t)wide0) * ((int64_t)multipliers[0])) + (int64_t)1073741824) >> (int64_t)31));
        wide2 = (((int32_t)in0[t1]) * slopes[i3]);
        wide2 = ((int32_t)(((((int64_t)wide2) * ((int64_t)multipliers[1])) + (int64_t)1073741824) >> (int64_t)31));
        int32_t t2 = ((int32_t)(((uint32_t)1 << (uint32_t)6) - (uint32_t)1));
        int32_t condval;
        if (0 <= ((int32_t)in0[t1])) {
          condval = wide0;
        } else {
          condval = ((wide2 >> 6) + ((int32_t)(((t2 >> 1) + ((int32_t)(wide2 < 0))) < (wide2 & t2))));
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
        narrow0 = (((narrow0 - ((int32_t)(narrow0 < 0))) + 2) >> 2);
        narrow2 = ((int32_t)(((((int64_t)((int32_t)b[i3])) * ((int64_t)multiplier[1])) + (int64_t)32768) >> (int64_t)16));
        narrow0 = ((int32_t)((((((int64_t)narrow0) + ((int64_t)narrow2)) * ((int64_t)multiplier[2])) + (int64_t)1073741824) >> (int64_t)31));
        out[t1] = ((int16_t)(((narrow0 - ((int32_t)(narrow0 < 0))) + 32768) >> 16));
      }
    }
  }
}

/*
 * batch_matmul: wide_matmul
 * int16 1x5x6x8 -> int16 1x5x6x6
 * element-wise operators inlined
 */
void net_batch_matmul(const int16_t *restrict in0, const int16_t *restrict in1, const int32_t *restrict multiplier, int16_t *restrict out) {
  int64_t sums;
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 6; ++i3) {
        sums = (int64_t)0;
        for (int32_t ax4 = 0; ax4 < 8; ++ax4) {
          int32_t t1 = (i1 * 48);
          sums = (sums + (((int64_t)in0[((t1 + (i2 * 8)) + ax4)]) * ((int64_t)in1[((t1 + (i3 * 8)) + ax4)])));
        }
        int64_t v0 = ((sums * ((int64_t)multiplier[0])) + (int64_t)8388608) >> (int64_t)24;
        int64_t v1 = (int64_t)32767;
        int64_t v2 = (v0) < (v1) ? (v0) : (v1);
        int64_t v3 = (int64_t)-32768;
        out[(((i1 * 36) + (i2 * 6)) + i3)] = ((int16_t)((v2) > (v3) ? (v2) : (v3)));
      }
    }
  }
}

/*
 * logistic: wide_sigmoid
 * int16 1x5x6x8 -> int16 1x5x6x8
 * element-wise operators inlined
 */
void net_logistic(const int16_t *restrict in0, const int16_t *restrict curve, int16_t *restrict out) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        int32_t condval;
        if ((((((int32_t)in0[t1]) * 20132) + 8192) >> 14) < 0) {
          condval = (((0 - ((int32_t)(((uint32_t)((int32_t)curve[(((((((int32_t)in0[t1]) * 20132) + 8192) >> 14) * -1) >> 9)])) << ((uint32_t)9)))) - ((((((((int32_t)in0[t1]) * 20132) + 8192) >> 14) * -1) & 511) * (((int32_t)curve[((((((((int32_t)in0[t1]) * 20132) + 8192) >> 14) * -1) >> 9) + 1)]) - ((int32_t)curve[(((((((int32_t)in0[t1]) * 20132) + 8192) >> 14) * -1) >> 9)])))) - 1);
        } else {
          condval = (((int32_t)(((uint32_t)((int32_t)curve[((((((int32_t)in0[t1]) * 20132) + 8192) >> 14) >> 9)])) << ((uint32_t)9))) + (((((((int32_t)in0[t1]) * 20132) + 8192) >> 14) & 511) * (((int32_t)curve[(((((((int32_t)in0[t1]) * 20132) + 8192) >> 14) >> 9) + 1)]) - ((int32_t)curve[((((((int32_t)in0[t1]) * 20132) + 8192) >> 14) >> 9)]))));
        }
        out[t1] = ((int16_t)((condval + 16777728) >> 10));
      }
    }
  }
}

/*
 * tanh: wide_sigmoid
 * int16 1x5x6x8 -> int16 1x5x6x8
 * element-wise operators inlined
 */
void net_tanh(const int16_t *restrict in0, const int16_t *restrict curve, int16_t *restrict out) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        int32_t condval;
        if (((int32_t)in0[t1]) < 0) {
          int32_t v0 = ((int32_t)in0[t1]) * -3;
          condval = (((0 - ((int32_t)(((uint32_t)((int32_t)curve[(((v0) < (65279) ? (v0) : (65279)) >> 8)])) << ((uint32_t)8)))) - ((((v0) < (65279) ? (v0) : (65279)) & 255) * (((int32_t)curve[((((v0) < (65279) ? (v0) : (65279)) >> 8) + 1)]) - ((int32_t)curve[(((v0) < (65279) ? (v0) : (65279)) >> 8)])))) - 1);
        } else {
          int32_t v1 = ((int32_t)in0[t1]) * 3;
          condval = (((int32_t)(((uint32_t)((int32_t)curve[(((v1) < (65279) ? (v1) : (65279)) >> 8)])) << ((uint32_t)8))) + ((((v1) < (65279) ? (v1) : (65279)) & 255) * (((int32_t)curve[((((v1) < (65279) ? (v1) : (65279)) >> 8) + 1)]) - ((int32_t)curve[(((v1) < (65279) ? (v1) : (65279)) >> 8)]))));
        }
        out[t1] = ((int16_t)((condval + 128) >> 8));
      }
    }
  }
}

/*
 * softmax: wide_softmax
 * int16 1x5x6x8 -> int16 1x5x6x8
 * element-wise operators inlined
 */
void net_softmax(const int16_t *restrict in0, const int16_t *restrict exponential, const int16_t *restrict reciprocal, const int32_t *restrict multiplier, int16_t *restrict out) {
  int16_t largest[30];
  int32_t total[30];
  int32_t wide0;
  int32_t zeros[30];
  int32_t scale[30];
  int32_t wide0_ptr_1;
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      int32_t t1 = ((i1 * 6) + i2);
      largest[t1] = (int16_t)-32768;
      for (int32_t k = 0; k < 8; ++k) {
        int16_t v0 = largest[t1];
        int16_t v1 = in0[(((i1 * 48) + (i2 * 8)) + k)];
        largest[t1] = ((v0) > (v1) ? (v0) : (v1));
      }
    }
  }
  for (int32_t i1_1 = 0; i1_1 < 5; ++i1_1) {
    for (int32_t i2_1 = 0; i2_1 < 6; ++i2_1) {
      int32_t t2 = ((i1_1 * 6) + i2_1);
      total[t2] = 0;
      for (int32_t j = 0; j < 8; ++j) {
        wide0 = ((int32_t)(((uint32_t)((((int64_t)((int32_t)in0[(((i1_1 * 48) + (i2_1 * 8)) + j)])) - ((int64_t)((int32_t)largest[t2]))) & (int64_t)4294967295)) << (uint32_t)1));
        wide0 = ((int32_t)(((((int64_t)wide0) * ((int64_t)multiplier[0])) + (int64_t)1073741824) >> (int64_t)31));
        int32_t v2 = wide0 + 32767;
        int32_t v3 = (v2) < (32767) ? (v2) : (32767);
        total[t2] = ((total[t2] + ((int32_t)exponential[((((v3) > (-32768) ? (v3) : (-32768)) >> 7) + 256)])) + ((((((int32_t)exponential[((((v3) > (-32768) ? (v3) : (-32768)) >> 7) + 257)]) - ((int32_t)exponential[((((v3) > (-32768) ? (v3) : (-32768)) >> 7) + 256)])) * (((v3) > (-32768) ? (v3) : (-32768)) & 127)) + 64) >> 7));
      }
    }
  }
  for (int32_t i1_2 = 0; i1_2 < 5; ++i1_2) {
    for (int32_t i2_2 = 0; i2_2 < 6; ++i2_2) {
      int32_t t3 = ((i1_2 * 6) + i2_2);
      zeros[t3] = ((((((((((((((((((int32_t)(total[t3] < 1073741824)) + ((int32_t)(total[t3] < 536870912))) + ((int32_t)(total[t3] < 268435456))) + ((int32_t)(total[t3] < 134217728))) + ((int32_t)(total[t3] < 67108864))) + ((int32_t)(total[t3] < 33554432))) + ((int32_t)(total[t3] < 16777216))) + ((int32_t)(total[t3] < 8388608))) + ((int32_t)(total[t3] < 4194304))) + ((int32_t)(total[t3] < 2097152))) + ((int32_t)(total[t3] < 1048576))) + ((int32_t)(total[t3] < 524288))) + ((int32_t)(total[t3] < 262144))) + ((int32_t)(total[t3] < 131072))) + ((int32_t)(total[t3] < 65536))) + ((int32_t)(total[t3] < 32768))) + 1);
    }
  }
  for (int32_t i1_3 = 0; i1_3 < 5; ++i1_3) {
    for (int32_t i2_3 = 0; i2_3 < 6; ++i2_3) {
      int32_t t4 = ((i1_3 * 6) + i2_3);
      int32_t v4 = zeros[t4] - 1;
      int32_t v5 = (v4) < (30) ? (v4) : (30);
      int32_t v6 = (((((int32_t)(((uint32_t)total[t4]) << ((uint32_t)((v5) > (0) ? (v5) : (0))))) >> 13) + 1) >> 1) - 98304;
      int32_t v7 = (v6) < (32767) ? (v6) : (32767);
      scale[t4] = (((int32_t)reciprocal[((((v7) > (-32768) ? (v7) : (-32768)) >> 7) + 256)]) + ((((((int32_t)reciprocal[((((v7) > (-32768) ? (v7) : (-32768)) >> 7) + 257)]) - ((int32_t)reciprocal[((((v7) > (-32768) ? (v7) : (-32768)) >> 7) + 256)])) * (((v7) > (-32768) ? (v7) : (-32768)) & 127)) + 64) >> 7));
    }
  }
  for (int32_t i1_4 = 0; i1_4 < 5; ++i1_4) {
    for (int32_t i2_4 = 0; i2_4 < 6; ++i2_4) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t5 = ((i1_4 * 6) + i2_4);
        int32_t t6 = (((i1_4 * 48) + (i2_4 * 8)) + i3);
        wide0_ptr_1 = ((int32_t)(((uint32_t)((((int64_t)((int32_t)in0[t6])) - ((int64_t)((int32_t)largest[t5]))) & (int64_t)4294967295)) << (uint32_t)1));
        wide0_ptr_1 = ((int32_t)(((((int64_t)wide0_ptr_1) * ((int64_t)multiplier[0])) + (int64_t)1073741824) >> (int64_t)31));
        int32_t v8 = wide0_ptr_1 + 32767;
        int32_t v9 = (v8) < (32767) ? (v8) : (32767);
        int32_t v10 = zeros[t5];
        int32_t v11 = 30 - ((v10) > (0) ? (v10) : (0));
        int32_t v12 = ((((((int32_t)exponential[((((v9) > (-32768) ? (v9) : (-32768)) >> 7) + 256)]) + ((((((int32_t)exponential[((((v9) > (-32768) ? (v9) : (-32768)) >> 7) + 257)]) - ((int32_t)exponential[((((v9) > (-32768) ? (v9) : (-32768)) >> 7) + 256)])) * (((v9) > (-32768) ? (v9) : (-32768)) & 127)) + 64) >> 7)) * scale[t5]) >> ((v11) > (0) ? (v11) : (0))) + 1) >> 1;
        int32_t v13 = (v12) < (32767) ? (v12) : (32767);
        out[t6] = ((int16_t)((v13) > (0) ? (v13) : (0)));
      }
    }
  }
}

/*
 * mean: tflite_mean
 * int16 1x5x6x8 -> int16 1x8
 * element-wise operators inlined
 */
void net_mean(const int16_t *restrict in0, const int32_t *restrict multiplier, int16_t *restrict out) {
  int32_t total;
  for (int32_t i1 = 0; i1 < 8; ++i1) {
    total = 0;
    for (int32_t ax2 = 0; ax2 < 5; ++ax2) {
      for (int32_t ax3 = 0; ax3 < 6; ++ax3) {
        total = (total + ((int32_t)in0[(((ax2 * 48) + (ax3 * 8)) + i1)]));
      }
    }
    total = ((int32_t)(((((int64_t)total) * ((int64_t)multiplier[0])) + (int64_t)1073741824) >> (int64_t)31));
    int32_t v0 = ((total - ((int32_t)(total < 0))) + 4) >> 3;
    int32_t v1 = (v0) < (32767) ? (v0) : (32767);
    out[i1] = ((int16_t)((v1) > (-32768) ? (v1) : (-32768)));
  }
}
