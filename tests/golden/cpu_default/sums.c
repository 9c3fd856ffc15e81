/* constant: net_onnx_add_factors[2], int64: factors of onnx_add, int64 2 */
/* constant: net_onnx_multiply_factors[1], int64: factors of onnx_multiply, int64 1 */
/* constant: net_tflite_add_multiplier[3], int32: multiplier of tflite_add, int32 3 */

/*
 * add, convert: astype + astype + add + right_shift + clip + astype + astype + add + multiply + add + right_shift + clip + astype
 * int8 1x5x6x8 -> int8 1x5x6x8
 * not scheduled
 */
void net_add_convert(const int8_t *restrict in0, const int8_t *restrict in1, int8_t *restrict out, int32_t *restrict workspace_0, int32_t *restrict workspace_1) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        workspace_0[t1] = ((int32_t)in0[t1]);
      }
    }
  }
  for (int32_t i1_1 = 0; i1_1 < 5; ++i1_1) {
    for (int32_t i2_1 = 0; i2_1 < 6; ++i2_1) {
      for (int32_t i3_1 = 0; i3_1 < 8; ++i3_1) {
        int32_t t2 = (((i1_1 * 48) + (i2_1 * 8)) + i3_1);
        workspace_1[t2] = ((int32_t)in1[t2]);
      }
    }
  }
  for (int32_t ax1 = 0; ax1 < 5; ++ax1) {
    for (int32_t ax2 = 0; ax2 < 6; ++ax2) {
      for (int32_t ax3 = 0; ax3 < 8; ++ax3) {
        int32_t t3 = (((ax1 * 48) + (ax2 * 8)) + ax3);
        workspace_0[t3] = (workspace_0[t3] + workspace_1[t3]);
      }
    }
  }
  for (int32_t ax1_1 = 0; ax1_1 < 5; ++ax1_1) {
    for (int32_t ax2_1 = 0; ax2_1 < 6; ++ax2_1) {
      for (int32_t ax3_1 = 0; ax3_1 < 8; ++ax3_1) {
        int32_t t4 = (((ax1_1 * 48) + (ax2_1 * 8)) + ax3_1);
        workspace_0[t4] = (workspace_0[t4] >> 1);
      }
    }
  }
  for (int32_t i1_2 = 0; i1_2 < 5; ++i1_2) {
    for (int32_t i2_2 = 0; i2_2 < 6; ++i2_2) {
      for (int32_t i3_2 = 0; i3_2 < 8; ++i3_2) {
        int32_t t5 = (((i1_2 * 48) + (i2_2 * 8)) + i3_2);
        int32_t v0 = workspace_0[t5];
        int32_t v1 = (v0) < (127) ? (v0) : (127);
        workspace_0[t5] = ((v1) > (0) ? (v1) : (0));
      }
    }
  }
  for (int32_t i1_3 = 0; i1_3 < 5; ++i1_3) {
    for (int32_t i2_3 = 0; i2_3 < 6; ++i2_3) {
      for (int32_t i3_3 = 0; i3_3 < 8; ++i3_3) {
        int32_t t6 = (((i1_3 * 48) + (i2_3 * 8)) + i3_3);
        ((int8_t*)workspace_1)[t6] = ((int8_t)workspace_0[t6]);
      }
    }
  }
  for (int32_t i1_4 = 0; i1_4 < 5; ++i1_4) {
    for (int32_t i2_4 = 0; i2_4 < 6; ++i2_4) {
      for (int32_t i3_4 = 0; i3_4 < 8; ++i3_4) {
        int32_t t7 = (((i1_4 * 48) + (i2_4 * 8)) + i3_4);
        workspace_0[t7] = ((int32_t)((int8_t*)workspace_1)[t7]);
      }
    }
  }
  for (int32_t ax1_2 = 0; ax1_2 < 5; ++ax1_2) {
    for (int32_t ax2_2 = 0; ax2_2 < 6; ++ax2_2) {
      for (int32_t ax3_2 = 0; ax3_2 < 8; ++ax3_2) {
        int32_t t8 = (((ax1_2 * 48) + (ax2_2 * 8)) + ax3_2);
        workspace_0[t8] = (workspace_0[t8] - 9);
      }
    }
  }
  for (int32_t ax1_3 = 0; ax1_3 < 5; ++ax1_3) {
    for (int32_t ax2_3 = 0; ax2_3 < 6; ++ax2_3) {
      for (int32_t ax3_3 = 0; ax3_3 < 8; ++ax3_3) {
        int32_t t9 = (((ax1_3 * 48) + (ax2_3 * 8)) + ax3_3);
        workspace_0[t9] = (workspace_0[t9] * 77);
      }
    }
  }
  for (int32_t ax1_4 = 0; ax1_4 < 5; ++ax1_4) {
    for (int32_t ax2_4 = 0; ax2_4 < 6; ++ax2_4) {
      for (int32_t ax3_4 = 0; ax3_4 < 8; ++ax3_4) {
        int32_t t10 = (((ax1_4 * 48) + (ax2_4 * 8)) + ax3_4);
        workspace_0[t10] = (workspace_0[t10] + 64);
      }
    }
  }
  for (int32_t ax1_5 = 0; ax1_5 < 5; ++ax1_5) {
    for (int32_t ax2_5 = 0; ax2_5 < 6; ++ax2_5) {
      for (int32_t ax3_5 = 0; ax3_5 < 8; ++ax3_5) {
        int32_t t11 = (((ax1_5 * 48) + (ax2_5 * 8)) + ax3_5);
        workspace_0[t11] = (workspace_0[t11] >> 7);
      }
    }
  }
  for (int32_t i1_5 = 0; i1_5 < 5; ++i1_5) {
    for (int32_t i2_5 = 0; i2_5 < 6; ++i2_5) {
      for (int32_t i3_5 = 0; i3_5 < 8; ++i3_5) {
        int32_t t12 = (((i1_5 * 48) + (i2_5 * 8)) + i3_5);
        int32_t v2 = workspace_0[t12];
        int32_t v3 = (v2) < (127) ? (v2) : (127);
        workspace_0[t12] = ((v3) > (-128) ? (v3) : (-128));
      }
    }
  }
  for (int32_t i1_6 = 0; i1_6 < 5; ++i1_6) {
    for (int32_t i2_6 = 0; i2_6 < 6; ++i2_6) {
      for (int32_t i3_6 = 0; i3_6 < 8; ++i3_6) {
        int32_t t13 = (((i1_6 * 48) + (i2_6 * 8)) + i3_6);
        out[t13] = ((int8_t)workspace_0[t13]);
      }
    }
  }
}

/*
 * tflite_add: tflite_add
 * int8 1x5x6x8 -> int8 1x5x6x8
 * not scheduled
 */
void net_tflite_add(const int8_t *restrict in0, const int8_t *restrict in1, const int32_t *restrict multiplier, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        int32_t v0 = (((((int32_t)((((((int64_t)(((((int32_t)((((((int64_t)((int32_t)in0[t1])) + (int64_t)128) * ((int64_t)multiplier[0])) + (int64_t)1024) >> (int64_t)11)) - ((int32_t)(((int32_t)((((((int64_t)((int32_t)in0[t1])) + (int64_t)128) * ((int64_t)multiplier[0])) + (int64_t)1024) >> (int64_t)11)) < 0))) + 16) >> 5)) + ((int64_t)((int32_t)((((((int64_t)((int32_t)in1[t1])) - (int64_t)5) * ((int64_t)multiplier[1])) + (int64_t)1024) >> (int64_t)11)))) * ((int64_t)multiplier[2])) + (int64_t)1073741824) >> (int64_t)31)) - ((int32_t)(((int32_t)((((((int64_t)(((((int32_t)((((((int64_t)((int32_t)in0[t1])) + (int64_t)128) * ((int64_t)multiplier[0])) + (int64_t)1024) >> (int64_t)11)) - ((int32_t)(((int32_t)((((((int64_t)((int32_t)in0[t1])) + (int64_t)128) * ((int64_t)multiplier[0])) + (int64_t)1024) >> (int64_t)11)) < 0))) + 16) >> 5)) + ((int64_t)((int32_t)((((((int64_t)((int32_t)in1[t1])) - (int64_t)5) * ((int64_t)multiplier[1])) + (int64_t)1024) >> (int64_t)11)))) * ((int64_t)multiplier[2])) + (int64_t)1073741824) >> (int64_t)31)) < 0))) + 131072) >> 18) + 127;
        int32_t v1 = (v0) < (127) ? (v0) : (127);
        out[t1] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
      }
    }
  }
}

/*
 * onnx_add: onnx_add
 * int8 1x5x6x8 -> int8 1x5x6x8
 * not scheduled
 */
void net_onnx_add(const int8_t *restrict in0, const int8_t *restrict in1, const int64_t *restrict factors, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        int64_t first0 = ((((int64_t)((int32_t)in1[t1])) * factors[1]) + (int64_t)20709259264);
        int64_t second1 = (((int64_t)((int32_t)in0[t1])) * factors[0]);
        int64_t total2 = (first0 + second1);
        int64_t low3 = ((total2 + (int64_t)536821759) >> (int64_t)30);
        int64_t condval;
        if (low3 == ((total2 + (int64_t)536920064) >> (int64_t)30)) {
          condval = low3;
        } else {
          int64_t moved0 = ((int64_t)((float)(((int64_t)((float)first0)) + second1)));
          condval = (((moved0 + ((moved0 >> (int64_t)30) & (int64_t)1)) + (int64_t)536870911) >> (int64_t)30);
        }
        int64_t v0 = (int64_t)127;
        int64_t v1 = (condval) < (v0) ? (condval) : (v0);
        int64_t v2 = (int64_t)-128;
        out[t1] = ((int8_t)((v1) > (v2) ? (v1) : (v2)));
      }
    }
  }
}

/*
 * onnx_multiply: onnx_binary
 * int8 1x5x6x8 -> int8 1x5x6x8
 * not scheduled
 */
void net_onnx_multiply(const int8_t *restrict in0, const int8_t *restrict in1, const int64_t *restrict factors, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        int64_t first0 = (((int64_t)((((int32_t)in0[t1]) - 1) * (((int32_t)in1[t1]) + 9))) * factors[0]);
        int64_t total2 = (first0 + (int64_t)2147483648);
        int64_t low3 = ((total2 + (int64_t)268369919) >> (int64_t)29);
        int64_t condval;
        if (low3 == ((total2 + (int64_t)268500992) >> (int64_t)29)) {
          condval = low3;
        } else {
          int64_t moved0 = ((int64_t)((float)(((int64_t)((float)first0)) + (int64_t)2147483648)));
          condval = (((moved0 + ((moved0 >> (int64_t)29) & (int64_t)1)) + (int64_t)268435455) >> (int64_t)29);
        }
        int64_t v0 = (int64_t)127;
        int64_t v1 = (condval) < (v0) ? (condval) : (v0);
        int64_t v2 = (int64_t)-128;
        out[t1] = ((int8_t)((v1) > (v2) ? (v1) : (v2)));
      }
    }
  }
}

/*
 * tflite_subtract: tflite_binary
 * int8 1x5x6x8 -> int8 1x5x6x8
 * not scheduled
 */
void net_tflite_subtract(const int8_t *restrict in0, const int8_t *restrict in1, const int32_t *restrict multiplier, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        int32_t v0 = (((((int32_t)((((((int64_t)(((((int32_t)((((((int64_t)((int32_t)in0[t1])) + (int64_t)128) * ((int64_t)multiplier[0])) + (int64_t)1024) >> (int64_t)11)) - ((int32_t)(((int32_t)((((((int64_t)((int32_t)in0[t1])) + (int64_t)128) * ((int64_t)multiplier[0])) + (int64_t)1024) >> (int64_t)11)) < 0))) + 16) >> 5)) - ((int64_t)((int32_t)((((((int64_t)((int32_t)in1[t1])) - (int64_t)5) * ((int64_t)multiplier[1])) + (int64_t)1024) >> (int64_t)11)))) * ((int64_t)multiplier[2])) + (int64_t)1073741824) >> (int64_t)31)) - ((int32_t)(((int32_t)((((((int64_t)(((((int32_t)((((((int64_t)((int32_t)in0[t1])) + (int64_t)128) * ((int64_t)multiplier[0])) + (int64_t)1024) >> (int64_t)11)) - ((int32_t)(((int32_t)((((((int64_t)((int32_t)in0[t1])) + (int64_t)128) * ((int64_t)multiplier[0])) + (int64_t)1024) >> (int64_t)11)) < 0))) + 16) >> 5)) - ((int64_t)((int32_t)((((((int64_t)((int32_t)in1[t1])) - (int64_t)5) * ((int64_t)multiplier[1])) + (int64_t)1024) >> (int64_t)11)))) * ((int64_t)multiplier[2])) + (int64_t)1073741824) >> (int64_t)31)) < 0))) + 131072) >> 18) + 127;
        int32_t v1 = (v0) < (127) ? (v0) : (127);
        out[t1] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
      }
    }
  }
}
