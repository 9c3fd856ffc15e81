/* constant: net_log_softmax_difference[256], int32: difference of log_softmax, int32 256 */
/* constant: net_onnx_softmax_exponential[256], int32: exponential of onnx_softmax, int32 256 */
/* constant: net_softmax_exponential[256], int32: exponential of softmax, int32 256 */
/* constant: net_tflite_softmax_exponential[256], int32: exponential of tflite_softmax, int32 256 */

/*
 * tflite_softmax: tflite_softmax
 * int8 4x12 -> int8 4x12
 * not scheduled
 */
void net_tflite_softmax(const int8_t *restrict in0, const int32_t *restrict exponential, int8_t *restrict out) {
  int8_t largest[4];
  int32_t total[4];
  int32_t zeros[4];
  int32_t guess[4];
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t k = 0; k < 12; ++k) {
      if (k == 0) {
        largest[i0] = (int8_t)-128;
      }
      int8_t v0 = largest[i0];
      int8_t v1 = in0[((i0 * 12) + k)];
      largest[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    for (int32_t j = 0; j < 12; ++j) {
      if (j == 0) {
        total[i0_1] = 0;
      }
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
    guess[i0_4] = (((int32_t)(((int64_t)1073741824 - (((int64_t)total[i0_4]) * (int64_t)1010580540)) >> (int64_t)31)) + 1515870810);
  }
  for (int32_t i0_5 = 0; i0_5 < 4; ++i0_5) {
    guess[i0_5] = ((((int32_t)(((((int64_t)guess[i0_5]) * ((int64_t)(~(((int32_t)(((((int64_t)total[i0_5]) * ((int64_t)guess[i0_5])) + (int64_t)1073741824) >> (int64_t)31)) - 536870913)))) + (int64_t)1073741824) >> (int64_t)31)) * 4) + guess[i0_5]);
  }
  for (int32_t i0_6 = 0; i0_6 < 4; ++i0_6) {
    guess[i0_6] = ((((int32_t)(((((int64_t)guess[i0_6]) * ((int64_t)(~(((int32_t)(((((int64_t)total[i0_6]) * ((int64_t)guess[i0_6])) + (int64_t)1073741824) >> (int64_t)31)) - 536870913)))) + (int64_t)1073741824) >> (int64_t)31)) * 4) + guess[i0_6]);
  }
  for (int32_t i0_7 = 0; i0_7 < 4; ++i0_7) {
    guess[i0_7] = ((((int32_t)(((((int64_t)guess[i0_7]) * ((int64_t)(~(((int32_t)(((((int64_t)total[i0_7]) * ((int64_t)guess[i0_7])) + (int64_t)1073741824) >> (int64_t)31)) - 536870913)))) + (int64_t)1073741824) >> (int64_t)31)) * 4) + guess[i0_7]);
  }
  for (int32_t i0_8 = 0; i0_8 < 4; ++i0_8) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0_8 * 12) + i1);
      int32_t v2 = zeros[i0_8];
      int32_t v3 = 34 - ((v2) > (3) ? (v2) : (3));
      int32_t condval;
      if (1073741824 <= guess[i0_8]) {
        condval = 2147483647;
      } else {
        condval = ((int32_t)(((uint32_t)guess[i0_8]) << (uint32_t)1));
      }
      int32_t v4 = (((((int32_t)(((((int64_t)condval) * ((int64_t)exponential[(((int32_t)largest[i0_8]) - ((int32_t)in0[t1]))])) + (int64_t)1073741824) >> (int64_t)31)) >> ((v3) > (0) ? (v3) : (0))) + 1) >> 1) - 128;
      out[t1] = ((int8_t)((v4) < (127) ? (v4) : (127)));
    }
  }
}

/*
 * log_softmax: tflite_log_softmax
 * int8 4x12 -> int8 4x12
 * not scheduled
 */
void net_log_softmax(const int8_t *restrict in0, const int32_t *restrict exponential, const int32_t *restrict difference, int8_t *restrict out) {
  int8_t largest[4];
  int32_t total[4];
  int32_t power[4];
  int32_t offset[4];
  int32_t square[4];
  int32_t divisor[4];
  int32_t guess[4];
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t k = 0; k < 12; ++k) {
      if (k == 0) {
        largest[i0] = (int8_t)-128;
      }
      int8_t v0 = largest[i0];
      int8_t v1 = in0[((i0 * 12) + k)];
      largest[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    for (int32_t j = 0; j < 12; ++j) {
      if (j == 0) {
        total[i0_1] = 0;
      }
      total[i0_1] = (total[i0_1] + (((exponential[(((int32_t)largest[i0_1]) - ((int32_t)in0[((i0_1 * 12) + j)]))] >> 11) + 1) >> 1));
    }
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    int32_t v2 = ((((((((((377487360 - (((int32_t)(total[i0_2] < 1073741824)) * 33554432)) - (((int32_t)(total[i0_2] < 536870912)) * 33554432)) - (((int32_t)(total[i0_2] < 268435456)) * 33554432)) - (((int32_t)(total[i0_2] < 134217728)) * 33554432)) - (((int32_t)(total[i0_2] < 67108864)) * 33554432)) - (((int32_t)(total[i0_2] < 33554432)) * 33554432)) - (((int32_t)(total[i0_2] < 16777216)) * 33554432)) - (((int32_t)(total[i0_2] < 8388608)) * 33554432)) - (((int32_t)(total[i0_2] < 4194304)) * 33554432)) - (((int32_t)(total[i0_2] < 2097152)) * 33554432)) - (((int32_t)(total[i0_2] < 1048576)) * 33554432);
    int32_t v3 = (((((((((((394264576 - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 1073741824)) * 33554432)) - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 536870912)) * 33554432)) - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 268435456)) * 33554432)) - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 134217728)) * 33554432)) - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 67108864)) * 33554432)) - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 33554432)) * 33554432)) - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 16777216)) * 33554432)) - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 8388608)) * 33554432)) - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 4194304)) * 33554432)) - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 2097152)) * 33554432)) - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 1048576)) * 33554432)) - (((int32_t)(((int32_t)(((((int64_t)total[i0_2]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 524288)) * 33554432);
    power[i0_2] = ((v2) > (v3) ? (v2) : (v3));
  }
  for (int32_t i0_3 = 0; i0_3 < 4; ++i0_3) {
    int64_t v4 = ((int64_t)((int32_t)(((((int64_t)((int32_t)(((uint32_t)total[i0_3]) << ((uint32_t)((((((((((((int32_t)(total[i0_3] < 1073741824)) + ((int32_t)(total[i0_3] < 536870912))) + ((int32_t)(total[i0_3] < 268435456))) + ((int32_t)(total[i0_3] < 134217728))) + ((int32_t)(total[i0_3] < 67108864))) + ((int32_t)(total[i0_3] < 33554432))) + ((int32_t)(total[i0_3] < 16777216))) + ((int32_t)(total[i0_3] < 8388608))) + ((int32_t)(total[i0_3] < 4194304))) + ((int32_t)(total[i0_3] < 2097152))) + ((int32_t)(total[i0_3] < 1048576))))))) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31))) * (int64_t)2;
    int64_t v5 = (int64_t)(((uint64_t)((int64_t)total[i0_3])) << ((uint64_t)(((((((((((((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 1073741824))) + ((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 536870912)))) + ((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 268435456)))) + ((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 134217728)))) + ((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 67108864)))) + ((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 33554432)))) + ((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 16777216)))) + ((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 8388608)))) + ((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 4194304)))) + ((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 2097152)))) + ((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 1048576)))) + ((int64_t)((int32_t)(((int32_t)(((((int64_t)total[i0_3]) * (int64_t)1518500250) + (int64_t)1073741824) >> (int64_t)31)) < 524288))))));
    int64_t v6 = (v4) < (v5) ? (v4) : (v5);
    int64_t v7 = (int64_t)2147483647;
    total[i0_3] = ((int32_t)((v6) < (v7) ? (v6) : (v7)));
  }
  for (int32_t i0_4 = 0; i0_4 < 4; ++i0_4) {
    offset[i0_4] = ((int32_t)(((uint32_t)(total[i0_4] - 1805811301)) << (uint32_t)1));
  }
  for (int32_t i0_5 = 0; i0_5 < 4; ++i0_5) {
    square[i0_5] = ((int32_t)(((((int64_t)offset[i0_5]) * ((int64_t)offset[i0_5])) + (int64_t)1073741824) >> (int64_t)31));
  }
  for (int32_t i0_6 = 0; i0_6 < 4; ++i0_6) {
    divisor[i0_6] = (((((int32_t)(((((((int64_t)(total[i0_6] >> 1)) + ((int64_t)(((total[i0_6] & 1) + 2) >> 1))) + (int64_t)902905650) * ((((int64_t)offset[i0_6]) + ((int64_t)((int32_t)(((((int64_t)square[i0_6]) * (int64_t)127690142) + (int64_t)1073741824) >> (int64_t)31)))) + (int64_t)1057819769)) + (int64_t)1073741824) >> (int64_t)31)) + ((int32_t)(((((int64_t)offset[i0_6]) * (int64_t)638450708) + (int64_t)1073741824) >> (int64_t)31))) >> 1) + 1073741824);
  }
  for (int32_t i0_7 = 0; i0_7 < 4; ++i0_7) {
    guess[i0_7] = (((int32_t)(((int64_t)1073741824 - (((int64_t)divisor[i0_7]) * (int64_t)1010580540)) >> (int64_t)31)) + 1515870810);
  }
  for (int32_t i0_8 = 0; i0_8 < 4; ++i0_8) {
    guess[i0_8] = ((((int32_t)(((((int64_t)guess[i0_8]) * ((int64_t)(~(((int32_t)(((((int64_t)divisor[i0_8]) * ((int64_t)guess[i0_8])) + (int64_t)1073741824) >> (int64_t)31)) - 536870913)))) + (int64_t)1073741824) >> (int64_t)31)) * 4) + guess[i0_8]);
  }
  for (int32_t i0_9 = 0; i0_9 < 4; ++i0_9) {
    guess[i0_9] = ((((int32_t)(((((int64_t)guess[i0_9]) * ((int64_t)(~(((int32_t)(((((int64_t)divisor[i0_9]) * ((int64_t)guess[i0_9])) + (int64_t)1073741824) >> (int64_t)31)) - 536870913)))) + (int64_t)1073741824) >> (int64_t)31)) * 4) + guess[i0_9]);
  }
  for (int32_t i0_10 = 0; i0_10 < 4; ++i0_10) {
    guess[i0_10] = ((((int32_t)(((((int64_t)guess[i0_10]) * ((int64_t)(~(((int32_t)(((((int64_t)divisor[i0_10]) * ((int64_t)guess[i0_10])) + (int64_t)1073741824) >> (int64_t)31)) - 536870913)))) + (int64_t)1073741824) >> (int64_t)31)) * 4) + guess[i0_10]);
  }
  for (int32_t i0_11 = 0; i0_11 < 4; ++i0_11) {
    int32_t t2 = ((int32_t)(((uint32_t)1 << (uint32_t)6) - (uint32_t)1));
    int32_t condval;
    if (1073741824 <= guess[i0_11]) {
      condval = 2147483647;
    } else {
      condval = ((int32_t)(((uint32_t)guess[i0_11]) << (uint32_t)1));
    }
    power[i0_11] = ((((int32_t)(((((int64_t)power[i0_11]) * (int64_t)1488522236) + (int64_t)1073741824) >> (int64_t)31)) * 2) + (((int32_t)((((((int64_t)((((int32_t)(((((int64_t)offset[i0_11]) * ((int64_t)total[i0_11])) + (int64_t)1073741824) >> (int64_t)31)) + ((int32_t)(((((int64_t)((int32_t)(((((int64_t)offset[i0_11]) * ((int64_t)square[i0_11])) + (int64_t)1073741824) >> (int64_t)31))) * (int64_t)117049297) + (int64_t)1073741824) >> (int64_t)31))) >> 6)) + ((int64_t)((int32_t)(((t2 >> 1) + ((int32_t)((((int32_t)(((((int64_t)offset[i0_11]) * ((int64_t)total[i0_11])) + (int64_t)1073741824) >> (int64_t)31)) + ((int32_t)(((((int64_t)((int32_t)(((((int64_t)offset[i0_11]) * ((int64_t)square[i0_11])) + (int64_t)1073741824) >> (int64_t)31))) * (int64_t)117049297) + (int64_t)1073741824) >> (int64_t)31))) < 0))) < ((((int32_t)(((((int64_t)offset[i0_11]) * ((int64_t)total[i0_11])) + (int64_t)1073741824) >> (int64_t)31)) + ((int32_t)(((((int64_t)((int32_t)(((((int64_t)offset[i0_11]) * ((int64_t)square[i0_11])) + (int64_t)1073741824) >> (int64_t)31))) * (int64_t)117049297) + (int64_t)1073741824) >> (int64_t)31))) & t2))))) * ((int64_t)condval)) + (int64_t)1073741824) >> (int64_t)31)) * 2));
  }
  for (int32_t i0_12 = 0; i0_12 < 4; ++i0_12) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0_12 * 12) + i1);
      int32_t v8 = ((((difference[(((int32_t)largest[i0_12]) - ((int32_t)in0[t1]))] - ((int32_t)((difference[(((int32_t)largest[i0_12]) - ((int32_t)in0[t1]))] - power[i0_12]) < 0))) + 2097152) - power[i0_12]) >> 22) + 127;
      int32_t v9 = (v8) < (127) ? (v8) : (127);
      out[t1] = ((int8_t)((v9) > (-128) ? (v9) : (-128)));
    }
  }
}

/*
 * onnx_softmax: onnx_softmax
 * int8 4x12 -> int8 4x12
 * not scheduled
 */
void net_onnx_softmax(const int8_t *restrict in0, const int32_t *restrict exponential, int8_t *restrict out) {
  int8_t largest[4];
  int32_t total[4];
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t kmax = 0; kmax < 12; ++kmax) {
      if (kmax == 0) {
        largest[i0] = (int8_t)-128;
      }
      int8_t v0 = largest[i0];
      int8_t v1 = in0[((i0 * 12) + kmax)];
      largest[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    for (int32_t ksum = 0; ksum < 12; ++ksum) {
      if (ksum == 0) {
        total[i0_1] = 0;
      }
      total[i0_1] = (total[i0_1] + exponential[(((int32_t)largest[i0_1]) - ((int32_t)in0[((i0_1 * 12) + ksum)]))]);
    }
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0_2 * 12) + i1);
      int32_t v2 = ((int32_t)(((((int64_t)exponential[(((int32_t)largest[i0_2]) - ((int32_t)in0[t1]))]) * (int64_t)16777216) + (((int64_t)(((uint64_t)((int64_t)total[i0_2])) << ((uint64_t)(int64_t)16))) >> (int64_t)1)) / ((int64_t)(((uint64_t)((int64_t)total[i0_2])) << ((uint64_t)(int64_t)16))))) - 128;
      int32_t v3 = (v2) < (127) ? (v2) : (127);
      out[t1] = ((int8_t)((v3) > (-128) ? (v3) : (-128)));
    }
  }
}

/*
 * softmax: integer_softmax
 * int8 4x12 -> uint8 4x12
 * not scheduled
 */
void net_softmax(const int8_t *restrict in0, const int32_t *restrict exponential, uint8_t *restrict out) {
  int32_t largest[4];
  int32_t total[4];
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t k = 0; k < 12; ++k) {
      if (k == 0) {
        largest[i0] = -2147483648;
      }
      int32_t v0 = largest[i0];
      int32_t v1 = (int32_t)in0[((i0 * 12) + k)];
      largest[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    for (int32_t j = 0; j < 12; ++j) {
      if (j == 0) {
        total[i0_1] = 0;
      }
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
 * not scheduled
 */
void net_ita_softmax(const int8_t *restrict in0, uint8_t *restrict out) {
  int32_t peaks[4];
  int32_t terms[4];
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t k = 0; k < 12; ++k) {
      if (k == 0) {
        peaks[i0] = -2147483648;
      }
      int32_t v0 = peaks[i0];
      int32_t v1 = (int32_t)in0[((i0 * 12) + k)];
      peaks[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    for (int32_t j = 0; j < 12; ++j) {
      if (j == 0) {
        terms[i0_1] = 0;
      }
      int32_t v2 = ((peaks[i0_1] + 16) - ((int32_t)in0[((i0_1 * 12) + j)])) >> 5;
      int32_t v3 = (v2) < (31) ? (v2) : (31);
      terms[i0_1] = (terms[i0_1] + (256 >> ((v3) > (0) ? (v3) : (0))));
    }
  }
  for (int32_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    terms[i0_2] = terms[i0_2];
  }
  for (int32_t i0_3 = 0; i0_3 < 4; ++i0_3) {
    terms[i0_3] = (65280 / terms[i0_3]);
  }
  for (int32_t i0_4 = 0; i0_4 < 4; ++i0_4) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0_4 * 12) + i1);
      int32_t v4 = ((peaks[i0_4] + 16) - ((int32_t)in0[t1])) >> 5;
      int32_t v5 = (v4) < (31) ? (v4) : (31);
      out[t1] = ((uint8_t)(terms[i0_4] >> ((v5) > (0) ? (v5) : (0))));
    }
  }
}
