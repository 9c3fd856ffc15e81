/* constant: net_log_softmax_difference[256], int32: difference of log_softmax, int32 256 */
/* constant: net_onnx_softmax_exponential[256], int32: exponential of onnx_softmax, int32 256 */
/* constant: net_softmax_exponential[256], int32: exponential of softmax, int32 256 */
/* constant: net_tflite_softmax_exponential[256], int32: exponential of tflite_softmax, int32 256 */

/*
 * tflite_softmax: tflite_softmax
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_tflite_softmax(const int8_t *restrict in0, const int32_t *restrict exponential, int8_t *restrict out) {
  int8_t largest[4];
  int32_t total[4];
  int32_t zeros[4];
  int32_t newton2[4];
  int32_t narrow0;
  int32_t wide1;
  int32_t narrow2;
  int32_t wide5;
  int32_t narrow6;
  int32_t wide9;
  int32_t narrow10;
  int32_t wide0;
  int32_t narrow1;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    largest[i0] = (int8_t)-128;
    for (int32_t k = 0; k < 12; ++k) {
      int8_t v0 = largest[i0];
      int8_t v1 = in0[((i0 * 12) + k)];
      largest[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    total[i0_1] = 0;
    for (int32_t j = 0; j < 12; ++j) {
      total[i0_1] = (total[i0_1] + (((exponential[(((int32_t)largest[i0_1]) - ((int32_t)in0[((i0_1 * 12) + j)]))] >> 11) + 1) >> 1));
    }
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    zeros[i0_2] = (((((((((((((int32_t)(total[i0_2] < 1073741824)) + ((int32_t)(total[i0_2] < 536870912))) + ((int32_t)(total[i0_2] < 268435456))) + ((int32_t)(total[i0_2] < 134217728))) + ((int32_t)(total[i0_2] < 67108864))) + ((int32_t)(total[i0_2] < 33554432))) + ((int32_t)(total[i0_2] < 16777216))) + ((int32_t)(total[i0_2] < 8388608))) + ((int32_t)(total[i0_2] < 4194304))) + ((int32_t)(total[i0_2] < 2097152))) + ((int32_t)(total[i0_2] < 1048576))) + 1);
  }
  for (int32_t i0_3 = 0; i0_3 < 4; ++i0_3) {
    total[i0_3] = ((((int32_t)((((uint32_t)total[i0_3]) << ((uint32_t)zeros[i0_3])) - (uint32_t)2147483648)) >> 1) + 1073741824);
  }
  for (int32_t i0_4 = 0; i0_4 < 4; ++i0_4) {
    narrow0 = ((int32_t)(((int64_t)1073741824 - (((int64_t)total[i0_4]) * (int64_t)1010580540)) >> (int64_t)31));
    wide1 = (narrow0 + 1515870810);
    narrow2 = ((int32_t)(((((int64_t)total[i0_4]) * ((int64_t)wide1)) + (int64_t)1073741824) >> (int64_t)31));
    narrow2 = (~(narrow2 - 536870913));
    wide1 = ((int32_t)(((((int64_t)wide1) * ((int64_t)narrow2)) + (int64_t)1073741824) >> (int64_t)31));
    wide5 = (((wide1 * 4) + narrow0) + 1515870810);
    narrow6 = ((int32_t)(((((int64_t)total[i0_4]) * ((int64_t)wide5)) + (int64_t)1073741824) >> (int64_t)31));
    narrow6 = (~(narrow6 - 536870913));
    wide5 = ((int32_t)(((((int64_t)wide5) * ((int64_t)narrow6)) + (int64_t)1073741824) >> (int64_t)31));
    wide9 = ((((wide5 * 4) + (wide1 * 4)) + narrow0) + 1515870810);
    narrow10 = ((int32_t)(((((int64_t)total[i0_4]) * ((int64_t)wide9)) + (int64_t)1073741824) >> (int64_t)31));
    narrow10 = (~(narrow10 - 536870913));
    wide9 = ((int32_t)(((((int64_t)wide9) * ((int64_t)narrow10)) + (int64_t)1073741824) >> (int64_t)31));
    newton2[i0_4] = (((((wide9 * 4) + (wide5 * 4)) + (wide1 * 4)) + narrow0) + 1515870810);
  }
  for (int32_t i0_5 = 0; i0_5 < 4; ++i0_5) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t condval;
      if (1073741824 <= newton2[i0_5]) {
        condval = 2147483647;
      } else {
        condval = ((int32_t)(((uint32_t)newton2[i0_5]) << (uint32_t)1));
      }
      wide0 = condval;
      int32_t t1 = ((i0_5 * 12) + i1);
      narrow1 = ((int32_t)(((((int64_t)wide0) * ((int64_t)exponential[(((int32_t)largest[i0_5]) - ((int32_t)in0[t1]))])) + (int64_t)1073741824) >> (int64_t)31));
      int32_t v2 = zeros[i0_5];
      int32_t v3 = 34 - ((v2) > (3) ? (v2) : (3));
      int32_t v4 = (((narrow1 >> ((v3) > (0) ? (v3) : (0))) + 1) >> 1) - 128;
      out[t1] = ((int8_t)((v4) < (127) ? (v4) : (127)));
    }
  }
}

/*
 * log_softmax: tflite_log_softmax
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_log_softmax(const int8_t *restrict in0, const int32_t *restrict exponential, const int32_t *restrict difference, int8_t *restrict out) {
  int8_t largest[4];
  int32_t total[4];
  int32_t rest[4];
  int32_t wide0;
  int32_t narrow2;
  int32_t wide3;
  int32_t wide4;
  int32_t wide5;
  int32_t wide6;
  int32_t wide7;
  int32_t wide8;
  int32_t wide9;
  int32_t wide10;
  int32_t wide11;
  int32_t wide12;
  int32_t wide13;
  int32_t offset[4];
  int32_t square[4];
  int32_t narrow0;
  int32_t divisor[4];
  int32_t wide0_ptr_1;
  int32_t wide1;
  int32_t narrow2_ptr_1;
  int32_t narrow4;
  int32_t logarithm[4];
  int32_t narrow0_ptr_1;
  int32_t narrow3;
  int32_t narrow4_ptr_1;
  int32_t wide6_ptr_1;
  int32_t narrow8;
  int32_t wide9_ptr_1;
  int32_t narrow10;
  int32_t wide13_ptr_1;
  int32_t narrow14;
  int32_t wide17;
  int32_t narrow18;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    largest[i0] = (int8_t)-128;
    for (int32_t k = 0; k < 12; ++k) {
      int8_t v0 = largest[i0];
      int8_t v1 = in0[((i0 * 12) + k)];
      largest[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    total[i0_1] = 0;
    for (int32_t j = 0; j < 12; ++j) {
      total[i0_1] = (total[i0_1] + (((exponential[(((int32_t)largest[i0_1]) - ((int32_t)in0[((i0_1 * 12) + j)]))] >> 11) + 1) >> 1));
    }
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    wide0 = ((int32_t)(((uint32_t)total[i0_2]) << ((uint32_t)((((((((((((int32_t)(total[i0_2] < 1073741824)) + ((int32_t)(total[i0_2] < 536870912))) + ((int32_t)(total[i0_2] < 268435456))) + ((int32_t)(total[i0_2] < 134217728))) + ((int32_t)(total[i0_2] < 67108864))) + ((int32_t)(total[i0_2] < 33554432))) + ((int32_t)(total[i0_2] < 16777216))) + ((int32_t)(total[i0_2] < 8388608))) + ((int32_t)(total[i0_2] < 4194304))) + ((int32_t)(total[i0_2] < 2097152))) + ((int32_t)(total[i0_2] < 1048576))))));
    wide0 = ((int32_t)(((((int64_t)wide0) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31));
    narrow2 = ((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31));
    wide3 = ((int32_t)(narrow2 < 1073741824));
    wide4 = ((int32_t)(narrow2 < 536870912));
    wide5 = ((int32_t)(narrow2 < 268435456));
    wide6 = ((int32_t)(narrow2 < 134217728));
    wide7 = ((int32_t)(narrow2 < 67108864));
    wide8 = ((int32_t)(narrow2 < 33554432));
    wide9 = ((int32_t)(narrow2 < 16777216));
    wide10 = ((int32_t)(narrow2 < 8388608));
    wide11 = ((int32_t)(narrow2 < 4194304));
    wide12 = ((int32_t)(narrow2 < 2097152));
    wide13 = ((int32_t)(narrow2 < 1048576));
    narrow2 = ((int32_t)(narrow2 < 524288));
    int64_t v2 = ((int64_t)wide0) * (int64_t)2;
    int64_t v3 = (int64_t)(((uint64_t)((int64_t)total[i0_2])) << ((uint64_t)(((((((((((((int64_t)wide3) + ((int64_t)wide4)) + ((int64_t)wide5)) + ((int64_t)wide6)) + ((int64_t)wide7)) + ((int64_t)wide8)) + ((int64_t)wide9)) + ((int64_t)wide10)) + ((int64_t)wide11)) + ((int64_t)wide12)) + ((int64_t)wide13)) + ((int64_t)narrow2))));
    int64_t v4 = (v2) < (v3) ? (v2) : (v3);
    int64_t v5 = (int64_t)2147483647;
    wide0 = ((int32_t)((v4) < (v5) ? (v4) : (v5)));
    rest[i0_2] = wide0;
  }
  for (int32_t i0_3 = 0; i0_3 < 4; ++i0_3) {
    offset[i0_3] = ((int32_t)(((uint32_t)(rest[i0_3] - 1805811301)) << (uint32_t)1));
  }
  for (int32_t i0_4 = 0; i0_4 < 4; ++i0_4) {
    narrow0 = ((int32_t)(((((int64_t)offset[i0_4]) * ((int64_t)offset[i0_4])) + (int64_t)1073741824) >> (int64_t)31));
    square[i0_4] = narrow0;
  }
  for (int32_t i0_5 = 0; i0_5 < 4; ++i0_5) {
    wide0_ptr_1 = (rest[i0_5] >> 1);
    wide1 = (((rest[i0_5] & 1) + 2) >> 1);
    narrow2_ptr_1 = ((int32_t)(((((int64_t)square[i0_5]) * (int64_t)127690142) + (int64_t)1073741824) >> (int64_t)31));
    wide0_ptr_1 = ((int32_t)(((((((int64_t)wide0_ptr_1) + ((int64_t)wide1)) + (int64_t)902905650) * ((((int64_t)offset[i0_5]) + ((int64_t)narrow2_ptr_1)) + (int64_t)1057819769)) + (int64_t)1073741824) >> (int64_t)31));
    narrow4 = ((int32_t)(((((int64_t)offset[i0_5]) * (int64_t)638450708) + (int64_t)1073741824) >> (int64_t)31));
    divisor[i0_5] = (((wide0_ptr_1 + narrow4) >> 1) + 1073741824);
  }
  for (int32_t i0_6 = 0; i0_6 < 4; ++i0_6) {
    narrow0_ptr_1 = ((int32_t)(((((int64_t)total[i0_6]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31));
    int32_t v6 = ((((((((((377487360 - (((int32_t)(total[i0_6] < 1073741824)) * 33554432)) - (((int32_t)(total[i0_6] < 536870912)) * 33554432)) - (((int32_t)(total[i0_6] < 268435456)) * 33554432)) - (((int32_t)(total[i0_6] < 134217728)) * 33554432)) - (((int32_t)(total[i0_6] < 67108864)) * 33554432)) - (((int32_t)(total[i0_6] < 33554432)) * 33554432)) - (((int32_t)(total[i0_6] < 16777216)) * 33554432)) - (((int32_t)(total[i0_6] < 8388608)) * 33554432)) - (((int32_t)(total[i0_6] < 4194304)) * 33554432)) - (((int32_t)(total[i0_6] < 2097152)) * 33554432)) - (((int32_t)(total[i0_6] < 1048576)) * 33554432);
    int32_t v7 = (((((((((((394264576 - (((int32_t)(narrow0_ptr_1 < 1073741824)) * 33554432)) - (((int32_t)(narrow0_ptr_1 < 536870912)) * 33554432)) - (((int32_t)(narrow0_ptr_1 < 268435456)) * 33554432)) - (((int32_t)(narrow0_ptr_1 < 134217728)) * 33554432)) - (((int32_t)(narrow0_ptr_1 < 67108864)) * 33554432)) - (((int32_t)(narrow0_ptr_1 < 33554432)) * 33554432)) - (((int32_t)(narrow0_ptr_1 < 16777216)) * 33554432)) - (((int32_t)(narrow0_ptr_1 < 8388608)) * 33554432)) - (((int32_t)(narrow0_ptr_1 < 4194304)) * 33554432)) - (((int32_t)(narrow0_ptr_1 < 2097152)) * 33554432)) - (((int32_t)(narrow0_ptr_1 < 1048576)) * 33554432)) - (((int32_t)(narrow0_ptr_1 < 524288)) * 33554432);
    narrow0_ptr_1 = ((v6) > (v7) ? (v6) : (v7));
    narrow0_ptr_1 = ((int32_t)(((((int64_t)narrow0_ptr_1) * (int64_t)1488522236) + (int64_t)1073741824) >> (int64_t)31));
    narrow3 = ((int32_t)(((((int64_t)offset[i0_6]) * ((int64_t)rest[i0_6])) + (int64_t)1073741824) >> (int64_t)31));
    narrow4_ptr_1 = ((int32_t)(((((int64_t)offset[i0_6]) * ((int64_t)square[i0_6])) + (int64_t)1073741824) >> (int64_t)31));
    narrow4_ptr_1 = ((int32_t)(((((int64_t)narrow4_ptr_1) * (int64_t)117049297) + (int64_t)1073741824) >> (int64_t)31));
    wide6_ptr_1 = ((narrow3 + narrow4_ptr_1) >> 6);
    int32_t t2 = ((int32_t)(((uint32_t)1 << (uint32_t)6) - (uint32_t)1));
    narrow3 = ((int32_t)(((t2 >> 1) + ((int32_t)((narrow3 + narrow4_ptr_1) < 0))) < ((narrow3 + narrow4_ptr_1) & t2)));
    narrow8 = ((int32_t)(((int64_t)1073741824 - (((int64_t)divisor[i0_6]) * (int64_t)1010580540)) >> (int64_t)31));
    wide9_ptr_1 = (narrow8 + 1515870810);
    narrow10 = ((int32_t)(((((int64_t)divisor[i0_6]) * ((int64_t)wide9_ptr_1)) + (int64_t)1073741824) >> (int64_t)31));
    narrow10 = (~(narrow10 - 536870913));
    wide9_ptr_1 = ((int32_t)(((((int64_t)wide9_ptr_1) * ((int64_t)narrow10)) + (int64_t)1073741824) >> (int64_t)31));
    wide13_ptr_1 = (((wide9_ptr_1 * 4) + narrow8) + 1515870810);
    narrow14 = ((int32_t)(((((int64_t)divisor[i0_6]) * ((int64_t)wide13_ptr_1)) + (int64_t)1073741824) >> (int64_t)31));
    narrow14 = (~(narrow14 - 536870913));
    wide13_ptr_1 = ((int32_t)(((((int64_t)wide13_ptr_1) * ((int64_t)narrow14)) + (int64_t)1073741824) >> (int64_t)31));
    wide17 = ((((wide13_ptr_1 * 4) + (wide9_ptr_1 * 4)) + narrow8) + 1515870810);
    narrow18 = ((int32_t)(((((int64_t)divisor[i0_6]) * ((int64_t)wide17)) + (int64_t)1073741824) >> (int64_t)31));
    narrow18 = (~(narrow18 - 536870913));
    wide17 = ((int32_t)(((((int64_t)wide17) * ((int64_t)narrow18)) + (int64_t)1073741824) >> (int64_t)31));
    int32_t condval;
    if (-442128986 <= ((((wide17 * 4) + (wide13_ptr_1 * 4)) + (wide9_ptr_1 * 4)) + narrow8)) {
      condval = 2147483647;
    } else {
      condval = ((int32_t)(((uint32_t)(((((wide17 * 4) + (wide13_ptr_1 * 4)) + (wide9_ptr_1 * 4)) + narrow8) + 1515870810)) << (uint32_t)1));
    }
    wide17 = condval;
    wide6_ptr_1 = ((int32_t)((((((int64_t)wide6_ptr_1) + ((int64_t)narrow3)) * ((int64_t)wide17)) + (int64_t)1073741824) >> (int64_t)31));
    logarithm[i0_6] = ((narrow0_ptr_1 * 2) + (wide6_ptr_1 * 2));
  }
  for (int32_t i0_7 = 0; i0_7 < 4; ++i0_7) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0_7 * 12) + i1);
      int32_t v8 = ((((difference[(((int32_t)largest[i0_7]) - ((int32_t)in0[t1]))] - ((int32_t)((difference[(((int32_t)largest[i0_7]) - ((int32_t)in0[t1]))] - logarithm[i0_7]) < 0))) + 2097152) - logarithm[i0_7]) >> 22) + 127;
      int32_t v9 = (v8) < (127) ? (v8) : (127);
      out[t1] = ((int8_t)((v9) > (-128) ? (v9) : (-128)));
    }
  }
}

/*
 * onnx_softmax: onnx_softmax
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_onnx_softmax(const int8_t *restrict in0, const int32_t *restrict exponential, int8_t *restrict out) {
  int8_t largest[4];
  int32_t total[4];
  int32_t narrow0;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    largest[i0] = (int8_t)-128;
    for (int32_t kmax = 0; kmax < 12; ++kmax) {
      int8_t v0 = largest[i0];
      int8_t v1 = in0[((i0 * 12) + kmax)];
      largest[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    total[i0_1] = 0;
    for (int32_t ksum = 0; ksum < 12; ++ksum) {
      total[i0_1] = (total[i0_1] + exponential[(((int32_t)largest[i0_1]) - ((int32_t)in0[((i0_1 * 12) + ksum)]))]);
    }
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0_2 * 12) + i1);
      narrow0 = ((int32_t)(((((int64_t)exponential[(((int32_t)largest[i0_2]) - ((int32_t)in0[t1]))]) * (int64_t)16777216) + (((int64_t)(((uint64_t)((int64_t)total[i0_2])) << ((uint64_t)(int64_t)16))) >> (int64_t)1)) / ((int64_t)(((uint64_t)((int64_t)total[i0_2])) << ((uint64_t)(int64_t)16)))));
      int32_t v2 = narrow0 - 128;
      int32_t v3 = (v2) < (127) ? (v2) : (127);
      out[t1] = ((int8_t)((v3) > (-128) ? (v3) : (-128)));
    }
  }
}

/*
 * softmax: integer_softmax
 * int8 4x12 -> uint8 4x12
 * element-wise operators inlined
 */
void net_softmax(const int8_t *restrict in0, const int32_t *restrict exponential, uint8_t *restrict out) {
  int32_t largest[4];
  int32_t total[4];
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    largest[i0] = -2147483648;
    for (int32_t k = 0; k < 12; ++k) {
      int32_t v0 = largest[i0];
      int32_t v1 = (int32_t)in0[((i0 * 12) + k)];
      largest[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    total[i0_1] = 0;
    for (int32_t j = 0; j < 12; ++j) {
      total[i0_1] = (total[i0_1] + exponential[(((int64_t)largest[i0_1]) - ((int64_t)((int32_t)in0[((i0_1 * 12) + j)])))]);
    }
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0_2 * 12) + i1);
      out[t1] = ((uint8_t)((exponential[(((int64_t)largest[i0_2]) - ((int64_t)((int32_t)in0[t1])))] * 255) / total[i0_2]));
    }
  }
}

/*
 * ita_softmax: ita_softmax
 * int8 4x12 -> uint8 4x12
 * element-wise operators inlined
 */
void net_ita_softmax(const int8_t *restrict in0, uint8_t *restrict out) {
  int32_t peaks[4];
  int32_t terms[4];
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    peaks[i0] = -2147483648;
    for (int32_t k = 0; k < 12; ++k) {
      int32_t v0 = peaks[i0];
      int32_t v1 = (int32_t)in0[((i0 * 12) + k)];
      peaks[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    terms[i0_1] = 0;
    for (int32_t j = 0; j < 12; ++j) {
      int32_t v2 = ((peaks[i0_1] + 16) - ((int32_t)in0[((i0_1 * 12) + j)])) >> 5;
      int32_t v3 = (v2) < (31) ? (v2) : (31);
      terms[i0_1] = (terms[i0_1] + (256 >> ((v3) > (0) ? (v3) : (0))));
    }
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    terms[i0_2] = (65280 / terms[i0_2]);
  }
  for (int32_t i0_3 = 0; i0_3 < 4; ++i0_3) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0_3 * 12) + i1);
      int32_t v4 = ((peaks[i0_3] + 16) - ((int32_t)in0[t1])) >> 5;
      int32_t v5 = (v4) < (31) ? (v4) : (31);
      out[t1] = ((uint8_t)(terms[i0_3] >> ((v5) > (0) ? (v5) : (0))));
    }
  }
}
