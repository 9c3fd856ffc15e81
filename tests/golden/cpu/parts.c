/* constant: net_log_figures[13], float32: figures of log, float32 13 */
/* constant: net_log_powers[28], float32: powers of log, float32 28 */
/* constant: net_lookup_table[12], int8: table of lookup, int8 4x3 */
/* constant: net_take_places[4], int32: places of take, int32 4 */

/*
 * take: take
 * int8 4x12 -> int8 4x4
 * element-wise operators inlined
 */
void net_take(const int8_t *restrict in0, const int32_t *restrict places, int8_t *restrict out) {
  for (int64_t i0 = (int64_t)0; i0 < (int64_t)4; ++i0) {
    for (int32_t i1 = 0; i1 < 4; ++i1) {
      out[((i0 * (int64_t)4) + ((int64_t)i1))] = in0[((i0 * (int64_t)12) + ((int64_t)places[i1]))];
    }
  }
}

/*
 * lookup: gather
 * int8 4x3 -> int8 2x3x3
 * element-wise operators inlined
 */
void net_lookup(const int8_t *restrict table, const int32_t *restrict in0, int8_t *restrict out) {
  for (int32_t i0 = 0; i0 < 2; ++i0) {
    for (int32_t i1 = 0; i1 < 3; ++i1) {
      for (int32_t i2 = 0; i2 < 3; ++i2) {
        int32_t t1 = ((i0 * 3) + i1);
        int32_t condval;
        if (in0[t1] < 0) {
          condval = (in0[t1] + 4);
        } else {
          condval = in0[t1];
        }
        int32_t v0 = (condval) < (3) ? (condval) : (3);
        out[(((i0 * 9) + (i1 * 3)) + i2)] = table[((((v0) > (0) ? (v0) : (0)) * 3) + i2)];
      }
    }
  }
}

/*
 * gather: gather
 * float32 4x12 -> float32 4x2x3
 * element-wise operators inlined
 */
void net_gather(const float *restrict in0, const int32_t *restrict in1, float *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 2; ++i1) {
      for (int32_t i2 = 0; i2 < 3; ++i2) {
        int32_t t1 = (i1 * 3);
        int32_t t2 = (t1 + i2);
        int32_t condval;
        if (in1[t2] < 0) {
          condval = (in1[t2] + 12);
        } else {
          condval = in1[t2];
        }
        int32_t v0 = (condval) < (11) ? (condval) : (11);
        out[(((i0 * 6) + t1) + i2)] = in0[((i0 * 12) + ((v0) > (0) ? (v0) : (0)))];
      }
    }
  }
}

/*
 * attach: attach
 * int8 4x12 -> int8 4x15
 * element-wise operators inlined
 */
void net_attach(const int8_t *restrict in0, const int8_t *restrict constant, int8_t *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 15; ++i1) {
      int8_t condval;
      if (i1 < 3) {
        condval = constant[((i0 * 3) + i1)];
      } else {
        condval = in0[(((i0 * 12) + i1) - 3)];
      }
      out[((i0 * 15) + i1)] = condval;
    }
  }
}

/*
 * log: real_log
 * float32 4x12 -> float32 4x12
 * element-wise operators inlined
 */
void net_log(const float *restrict in0, const float *restrict figures, const float *restrict powers, float *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      float x0 = in0[t1];
      float condval;
      if (powers[0] <= x0) {
        condval = (x0 * powers[1]);
      } else {
        condval = x0;
      }
      float m1 = condval;
      float condval_1;
      if (powers[0] <= x0) {
        condval_1 = (figures[5] + powers[3]);
      } else {
        condval_1 = figures[5];
      }
      float n2 = condval_1;
      float condval_2;
      if (m1 < powers[2]) {
        condval_2 = (m1 * powers[0]);
      } else {
        condval_2 = m1;
      }
      float m3 = condval_2;
      float condval_3;
      if (m1 < powers[2]) {
        condval_3 = (n2 - powers[3]);
      } else {
        condval_3 = n2;
      }
      float n4 = condval_3;
      float condval_4;
      if (powers[4] <= m3) {
        condval_4 = (m3 * powers[5]);
      } else {
        condval_4 = m3;
      }
      float m5 = condval_4;
      float condval_5;
      if (powers[4] <= m3) {
        condval_5 = (n4 + powers[7]);
      } else {
        condval_5 = n4;
      }
      float n6 = condval_5;
      float condval_6;
      if (m5 < powers[6]) {
        condval_6 = (m5 * powers[4]);
      } else {
        condval_6 = m5;
      }
      float m7 = condval_6;
      float condval_7;
      if (m5 < powers[6]) {
        condval_7 = (n6 - powers[7]);
      } else {
        condval_7 = n6;
      }
      float n8 = condval_7;
      float condval_8;
      if (powers[8] <= m7) {
        condval_8 = (m7 * powers[9]);
      } else {
        condval_8 = m7;
      }
      float m9 = condval_8;
      float condval_9;
      if (powers[8] <= m7) {
        condval_9 = (n8 + powers[11]);
      } else {
        condval_9 = n8;
      }
      float n10 = condval_9;
      float condval_10;
      if (m9 < powers[10]) {
        condval_10 = (m9 * powers[8]);
      } else {
        condval_10 = m9;
      }
      float m11 = condval_10;
      float condval_11;
      if (m9 < powers[10]) {
        condval_11 = (n10 - powers[11]);
      } else {
        condval_11 = n10;
      }
      float n12 = condval_11;
      float condval_12;
      if (powers[12] <= m11) {
        condval_12 = (m11 * powers[13]);
      } else {
        condval_12 = m11;
      }
      float m13 = condval_12;
      float condval_13;
      if (powers[12] <= m11) {
        condval_13 = (n12 + powers[15]);
      } else {
        condval_13 = n12;
      }
      float n14 = condval_13;
      float condval_14;
      if (m13 < powers[14]) {
        condval_14 = (m13 * powers[12]);
      } else {
        condval_14 = m13;
      }
      float m15 = condval_14;
      float condval_15;
      if (m13 < powers[14]) {
        condval_15 = (n14 - powers[15]);
      } else {
        condval_15 = n14;
      }
      float n16 = condval_15;
      float condval_16;
      if (powers[16] <= m15) {
        condval_16 = (m15 * powers[17]);
      } else {
        condval_16 = m15;
      }
      float m17 = condval_16;
      float condval_17;
      if (powers[16] <= m15) {
        condval_17 = (n16 + powers[19]);
      } else {
        condval_17 = n16;
      }
      float n18 = condval_17;
      float condval_18;
      if (m17 < powers[18]) {
        condval_18 = (m17 * powers[16]);
      } else {
        condval_18 = m17;
      }
      float m19 = condval_18;
      float condval_19;
      if (m17 < powers[18]) {
        condval_19 = (n18 - powers[19]);
      } else {
        condval_19 = n18;
      }
      float n20 = condval_19;
      float condval_20;
      if (powers[20] <= m19) {
        condval_20 = (m19 * powers[21]);
      } else {
        condval_20 = m19;
      }
      float m21 = condval_20;
      float condval_21;
      if (powers[20] <= m19) {
        condval_21 = (n20 + powers[23]);
      } else {
        condval_21 = n20;
      }
      float n22 = condval_21;
      float condval_22;
      if (m21 < powers[22]) {
        condval_22 = (m21 * powers[20]);
      } else {
        condval_22 = m21;
      }
      float m23 = condval_22;
      float condval_23;
      if (m21 < powers[22]) {
        condval_23 = (n22 - powers[23]);
      } else {
        condval_23 = n22;
      }
      float n24 = condval_23;
      float condval_24;
      if (powers[24] <= m23) {
        condval_24 = (m23 * powers[25]);
      } else {
        condval_24 = m23;
      }
      float m25 = condval_24;
      float condval_25;
      if (powers[24] <= m23) {
        condval_25 = (n24 + powers[27]);
      } else {
        condval_25 = n24;
      }
      float n26 = condval_25;
      float condval_26;
      if (m25 < powers[26]) {
        condval_26 = (m25 * powers[24]);
      } else {
        condval_26 = m25;
      }
      float m27 = condval_26;
      float condval_27;
      if (m25 < powers[26]) {
        condval_27 = (n26 - powers[27]);
      } else {
        condval_27 = n26;
      }
      float n28 = condval_27;
      float condval_28;
      if (figures[2] < m27) {
        condval_28 = (m27 * figures[3]);
      } else {
        condval_28 = m27;
      }
      float m29 = condval_28;
      float condval_29;
      if (figures[2] < m27) {
        condval_29 = (n28 + figures[4]);
      } else {
        condval_29 = n28;
      }
      float n30 = condval_29;
      float s31 = ((m29 - figures[4]) / (m29 + figures[4]));
      float square32 = (s31 * s31);
      float result33 = (((s31 * ((((((((figures[8] * square32) + figures[9]) * square32) + figures[10]) * square32) + figures[11]) * square32) + figures[12])) + (n30 * figures[1])) + (n30 * figures[0]));
      float condval_30;
      if (x0 < figures[7]) {
        float condval_31;
        if (x0 == figures[5]) {
          condval_31 = figures[6];
        } else {
          float condval_32;
          if (x0 < figures[5]) {
            condval_32 = (figures[5] / figures[5]);
          } else {
            condval_32 = result33;
          }
          condval_31 = condval_32;
        }
        condval_30 = condval_31;
      } else {
        condval_30 = x0;
      }
      out[t1] = condval_30;
    }
  }
}

/*
 * pad_reals: pad_axes
 * float32 4x12 -> float32 4x15
 * element-wise operators inlined
 */
void net_pad_reals(const float *restrict in0, float *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 15; ++i1) {
      float condval;
      if ((1 <= i1) && (i1 < 13)) {
        condval = in0[(((i0 * 12) + i1) - 1)];
      } else {
        condval = 0.000000e+00f;
      }
      out[((i0 * 15) + i1)] = condval;
    }
  }
}
