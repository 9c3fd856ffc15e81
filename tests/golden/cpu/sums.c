/* constant: net_onnx_add_factors[2], int64: factors of onnx_add, int64 2 */
/* constant: net_onnx_multiply_factors[1], int64: factors of onnx_multiply, int64 1 */
/* constant: net_tflite_add_multiplier[3], int32: multiplier of tflite_add, int32 3 */
/* constant: net_tflite_subtract_multiplier[3], int32: multiplier of tflite_subtract, int32 3 */

/*
 * add, convert: add + right_shift + clip + astype + astype + add + multiply + add + right_shift + clip + astype
 * int8 1x5x6x8 -> int8 1x5x6x8
 * element-wise operators inlined
 */
void net_add_convert(const int8_t *restrict in0, const int8_t *restrict in1, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        int32_t v0 = (((int32_t)in0[t1]) + ((int32_t)in1[t1])) >> 1;
        out[t1] = ((int8_t)(((((int32_t)((int8_t)((v0) > (0) ? (v0) : (0)))) * 77) - 629) >> 7));
      }
    }
  }
}

/*
 * tflite_add: tflite_add
 * int8 1x5x6x8 -> int8 1x5x6x8
 * element-wise operators inlined
 */
void net_tflite_add(const int8_t *restrict in0, const int8_t *restrict in1, const int32_t *restrict multiplier, int8_t *restrict out) {
  int32_t wide0;
  int32_t narrow1;
  int32_t narrow4;
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        wide0 = ((((int32_t)in0[t1]) * 1048576) + 134217728);
        narrow1 = ((int32_t)((((int64_t)wide0) * ((int64_t)((uint32_t)multiplier[0]))) >> (int64_t)32));
        wide0 = ((int32_t)(((((int64_t)wide0) * ((int64_t)((uint32_t)multiplier[0]))) >> (int64_t)31) & (int64_t)1));
        narrow1 = ((((((narrow1 + wide0) - ((int32_t)((narrow1 + wide0) < 0))) >> 4) + 1) >> 1) + (((((int32_t)in1[t1]) * 1048576) - 5242880) >> 1));
        narrow4 = ((int32_t)((((int64_t)narrow1) * ((int64_t)((uint32_t)multiplier[2]))) >> (int64_t)32));
        narrow1 = ((int32_t)(((((int64_t)narrow1) * ((int64_t)((uint32_t)multiplier[2]))) >> (int64_t)31) & (int64_t)1));
        int32_t v0 = (((((narrow4 + narrow1) - ((int32_t)((narrow4 + narrow1) < 0))) >> 17) + 1) >> 1) + 127;
        int32_t v1 = (v0) < (127) ? (v0) : (127);
        out[t1] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
      }
    }
  }
}

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
 * element-wise operators inlined
 */
void net_onnx_multiply(const int8_t *restrict in0, const int8_t *restrict in1, const int64_t *restrict factors, int8_t *restrict out) {
  int32_t wide0;
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        wide0 = ((((int32_t)in0[t1]) - 1) * (((int32_t)in1[t1]) + 9));
        int64_t first0 = (((int64_t)wide0) * factors[0]);
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
 * element-wise operators inlined
 */
void net_tflite_subtract(const int8_t *restrict in0, const int8_t *restrict in1, const int32_t *restrict multiplier, int8_t *restrict out) {
  int32_t narrow0;
  int32_t narrow2;
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
        narrow0 = ((int32_t)((((((int64_t)((int32_t)in0[t1])) + (int64_t)128) * ((int64_t)multiplier[0])) + (int64_t)1024) >> (int64_t)11));
        narrow0 = (((narrow0 - ((int32_t)(narrow0 < 0))) + 16) >> 5);
        narrow2 = ((int32_t)((((((int64_t)((int32_t)in1[t1])) - (int64_t)5) * ((int64_t)multiplier[1])) + (int64_t)1024) >> (int64_t)11));
        narrow0 = ((int32_t)((((((int64_t)narrow0) - ((int64_t)narrow2)) * ((int64_t)multiplier[2])) + (int64_t)1073741824) >> (int64_t)31));
        int32_t v0 = (((narrow0 - ((int32_t)(narrow0 < 0))) + 131072) >> 18) + 127;
        int32_t v1 = (v0) < (127) ? (v0) : (127);
        out[t1] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
      }
    }
  }
}
