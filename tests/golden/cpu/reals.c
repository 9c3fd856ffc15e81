/* constant: net_average_count[1], float32: count of average, float32 1 */
/* constant: net_conv_bias[3], float32: bias of conv, float32 3 */
/* constant: net_conv_weight[54], float32: weight of conv, float32 3x2x3x3 */
/* constant: net_erf_figures[14], float32: figures of erf, float32 14 */
/* constant: net_exp_figures[13], float32: figures of exp, float32 13 */
/* constant: net_exp_powers[144], float32: powers of exp, float32 144 */
/* constant: net_matmul_b[60], float32: b of matmul, float32 12x5 */
/* constant: net_round_ends[2], float32: ends of round, float32 2 */
/* constant: net_select_b[1], float32: b of select, float32 1x1 */
/* constant: net_select_mask[48], int8: mask of select, int8 4x12 */
/* constant: net_sqrt_squares[69], float32: squares of sqrt, float32 69 */
/* constant: net_sqrt_starts[69], float32: starts of sqrt, float32 69 */
/* constant: net_tanh_figures[13], float32: figures of tanh, float32 13 */

/*
 * divide: real_combine
 * float32 4x12 -> float32 4x12
 * element-wise operators inlined
 */
void net_divide(const float *restrict in0, const float *restrict in1, float *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      out[t1] = (in0[t1] / in1[t1]);
    }
  }
}

/*
 * round: real_round
 * float32 4x12 -> float32 4x12
 * element-wise operators inlined
 */
void net_round(const float *restrict in0, const float *restrict ends, float *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      float condval;
      if ((in0[t1] < ends[0]) && ((ends[0] * -1.000000e+00f) < in0[t1])) {
        float condval_1;
        if (0.000000e+00f <= in0[t1]) {
          condval_1 = ((in0[t1] + ends[0]) - ends[1]);
        } else {
          condval_1 = ((in0[t1] - ends[0]) + ends[1]);
        }
        condval = condval_1;
      } else {
        condval = in0[t1];
      }
      out[t1] = condval;
    }
  }
}

/*
 * matmul: real_matmul
 * float32 4x12 -> float32 4x5
 * element-wise operators inlined
 */
void net_matmul(const float *restrict in0, const float *restrict b, float *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 5; ++i1) {
      int32_t t1 = ((i0 * 5) + i1);
      out[t1] = 0.000000e+00f;
      for (int32_t k = 0; k < 12; ++k) {
        out[t1] = (out[t1] + (in0[((i0 * 12) + k)] * b[((k * 5) + i1)]));
      }
    }
  }
}

/*
 * erf: real_map
 * float32 4x12 -> float32 4x12
 * element-wise operators inlined
 */
void net_erf(const float *restrict in0, const float *restrict figures, float *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      float x0 = in0[t1];
      float condval;
      if (x0 < figures[1]) {
        condval = x0;
      } else {
        condval = figures[1];
      }
      float upper1 = condval;
      float condval_1;
      if (figures[0] < upper1) {
        condval_1 = upper1;
      } else {
        condval_1 = figures[0];
      }
      float inside2 = condval_1;
      float square3 = (inside2 * inside2);
      out[t1] = ((inside2 * ((((((((((((figures[2] * square3) + figures[3]) * square3) + figures[4]) * square3) + figures[5]) * square3) + figures[6]) * square3) + figures[7]) * square3) + figures[8])) / ((((((((figures[9] * square3) + figures[10]) * square3) + figures[11]) * square3) + figures[12]) * square3) + figures[13]));
    }
  }
}

/*
 * tanh: real_map
 * float32 4x12 -> float32 4x12
 * element-wise operators inlined
 */
void net_tanh(const float *restrict in0, const float *restrict figures, float *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      float x0 = in0[t1];
      float condval;
      if (x0 < figures[1]) {
        condval = x0;
      } else {
        condval = figures[1];
      }
      float upper1 = condval;
      float condval_1;
      if (figures[0] < upper1) {
        condval_1 = upper1;
      } else {
        condval_1 = figures[0];
      }
      float inside2 = condval_1;
      float square3 = (inside2 * inside2);
      out[t1] = ((inside2 * ((((((((((((figures[2] * square3) + figures[3]) * square3) + figures[4]) * square3) + figures[5]) * square3) + figures[6]) * square3) + figures[7]) * square3) + figures[8])) / ((((((figures[9] * square3) + figures[10]) * square3) + figures[11]) * square3) + figures[12]));
    }
  }
}

/*
 * exp: real_exp
 * float32 4x12 -> float32 4x12
 * element-wise operators inlined
 */
void net_exp(const float *restrict in0, const float *restrict figures, const float *restrict powers, float *restrict out) {
  float clipped[48];
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      float x0 = in0[t1];
      float condval;
      if (x0 < figures[1]) {
        condval = x0;
      } else {
        condval = figures[1];
      }
      float upper1 = condval;
      float condval_1;
      if (figures[0] < upper1) {
        condval_1 = upper1;
      } else {
        condval_1 = figures[0];
      }
      float inside2 = condval_1;
      clipped[t1] = inside2;
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    for (int32_t i1_1 = 0; i1_1 < 12; ++i1_1) {
      int32_t t2 = ((i0_1 * 12) + i1_1);
      float n0 = ((float)(((int32_t)((clipped[t2] * figures[2]) + 1.605000e+02f)) - 160));
      float rest1 = (clipped[t2] - (n0 * figures[3]));
      float rest2 = (rest1 - (n0 * figures[4]));
      out[t2] = ((((((((((((((((figures[5] * rest2) + figures[6]) * rest2) + figures[7]) * rest2) + figures[8]) * rest2) + figures[9]) * rest2) + figures[10]) * rest2) + figures[11]) * rest2) + figures[12]) * powers[(((((int32_t)((clipped[t2] * figures[2]) + 1.605000e+02f)) - 160) >> 1) + 77)]) * powers[((((int64_t)((int32_t)((clipped[t2] * figures[2]) + 1.605000e+02f))) - ((int64_t)((((int32_t)((clipped[t2] * figures[2]) + 1.605000e+02f)) - 160) >> 1))) - (int64_t)83)]);
    }
  }
}

/*
 * sqrt: real_sqrt
 * float32 4x12 -> float32 4x12
 * element-wise operators inlined
 */
void net_sqrt(const float *restrict in0, const float *restrict squares, const float *restrict starts, float *restrict out) {
  float start;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      start = -3.402823e+38f;
      int32_t t1 = ((i0 * 12) + i1);
      for (int32_t ax2 = 0; ax2 < 69; ++ax2) {
        float v0 = start;
        float condval;
        if (squares[ax2] <= in0[t1]) {
          condval = starts[ax2];
        } else {
          condval = starts[0];
        }
        start = ((v0) > (condval) ? (v0) : (condval));
      }
      float condval_1;
      if (0.000000e+00f < in0[t1]) {
        condval_1 = ((((((((((start + (in0[t1] / start)) * 5.000000e-01f) + (in0[t1] / ((start + (in0[t1] / start)) * 5.000000e-01f))) * 5.000000e-01f) + (in0[t1] / ((((start + (in0[t1] / start)) * 5.000000e-01f) + (in0[t1] / ((start + (in0[t1] / start)) * 5.000000e-01f))) * 5.000000e-01f))) * 5.000000e-01f) + (in0[t1] / ((((((start + (in0[t1] / start)) * 5.000000e-01f) + (in0[t1] / ((start + (in0[t1] / start)) * 5.000000e-01f))) * 5.000000e-01f) + (in0[t1] / ((((start + (in0[t1] / start)) * 5.000000e-01f) + (in0[t1] / ((start + (in0[t1] / start)) * 5.000000e-01f))) * 5.000000e-01f))) * 5.000000e-01f))) * 5.000000e-01f) + (in0[t1] / ((((((((start + (in0[t1] / start)) * 5.000000e-01f) + (in0[t1] / ((start + (in0[t1] / start)) * 5.000000e-01f))) * 5.000000e-01f) + (in0[t1] / ((((start + (in0[t1] / start)) * 5.000000e-01f) + (in0[t1] / ((start + (in0[t1] / start)) * 5.000000e-01f))) * 5.000000e-01f))) * 5.000000e-01f) + (in0[t1] / ((((((start + (in0[t1] / start)) * 5.000000e-01f) + (in0[t1] / ((start + (in0[t1] / start)) * 5.000000e-01f))) * 5.000000e-01f) + (in0[t1] / ((((start + (in0[t1] / start)) * 5.000000e-01f) + (in0[t1] / ((start + (in0[t1] / start)) * 5.000000e-01f))) * 5.000000e-01f))) * 5.000000e-01f))) * 5.000000e-01f))) * 5.000000e-01f);
      } else {
        condval_1 = 0.000000e+00f;
      }
      out[t1] = condval_1;
    }
  }
}

/*
 * max: real_reduce
 * float32 4x12 -> float32 4x1
 * element-wise operators inlined
 */
void net_max(const float *restrict in0, float *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    out[i0] = -3.402823e+38f;
    for (int32_t k1 = 0; k1 < 12; ++k1) {
      float v0 = out[i0];
      float v1 = in0[((i0 * 12) + k1)];
      out[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
}

/*
 * average: real_average
 * float32 1x2x4x6 -> float32 1x2x2x3
 * element-wise operators inlined
 */
void net_average(const float *restrict in0, const float *restrict count, float *restrict out) {
  float total;
  for (int32_t i1 = 0; i1 < 2; ++i1) {
    for (int32_t i2 = 0; i2 < 2; ++i2) {
      for (int32_t i3 = 0; i3 < 3; ++i3) {
        total = 0.000000e+00f;
        for (int32_t ax4 = 0; ax4 < 2; ++ax4) {
          for (int32_t ax5 = 0; ax5 < 2; ++ax5) {
            total = (total + in0[(((((i1 * 24) + (i2 * 12)) + (ax4 * 6)) + (i3 * 2)) + ax5)]);
          }
        }
        out[(((i1 * 6) + (i2 * 3)) + i3)] = (total / count[0]);
      }
    }
  }
}

/*
 * average_dilated: real_average
 * float32 1x2x4x6 -> float32 1x2x2x3
 * element-wise operators inlined
 */
void net_average_dilated(const float *restrict in0, const float *restrict count, float *restrict out) {
  float total;
  for (int32_t i1 = 0; i1 < 2; ++i1) {
    for (int32_t i2 = 0; i2 < 2; ++i2) {
      for (int32_t i3 = 0; i3 < 3; ++i3) {
        total = 0.000000e+00f;
        for (int32_t ax4 = 0; ax4 < 2; ++ax4) {
          for (int32_t ax5 = 0; ax5 < 2; ++ax5) {
            total = (total + in0[(((((i1 * 24) + (ax4 * 12)) + (i2 * 6)) + (ax5 * 3)) + i3)]);
          }
        }
        out[(((i1 * 6) + (i2 * 3)) + i3)] = (total / count[0]);
      }
    }
  }
}

/*
 * arg_maximum: real_arg_extreme
 * float32 4x12 -> int32 4
 * element-wise operators inlined
 */
void net_arg_maximum(const float *restrict in0, int32_t *restrict out) {
  float most[4];
  int32_t first;
  int32_t narrow0;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    most[i0] = -3.402823e+38f;
    for (int32_t i = 0; i < 12; ++i) {
      float v0 = most[i0];
      float v1 = in0[((i0 * 12) + i)];
      most[i0] = ((v0) > (v1) ? (v0) : (v1));
    }
  }
  for (int32_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    first = 2147483647;
    for (int32_t ax1 = 0; ax1 < 12; ++ax1) {
      narrow0 = ax1;
      int32_t v2 = first;
      int32_t condval;
      if (in0[((i0_1 * 12) + ax1)] == most[i0_1]) {
        condval = narrow0;
      } else {
        condval = 12;
      }
      first = ((v2) < (condval) ? (v2) : (condval));
    }
    int32_t condval_1;
    if (first == 12) {
      condval_1 = 0;
    } else {
      condval_1 = first;
    }
    out[i0_1] = condval_1;
  }
}

/*
 * select: select
 * int8 4x12 -> float32 4x12
 * element-wise operators inlined
 */
void net_select(const int8_t *restrict mask, const float *restrict in0, const float *restrict b, float *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      float condval;
      if (((int32_t)mask[t1]) != 0) {
        condval = in0[t1];
      } else {
        condval = b[0];
      }
      out[t1] = condval;
    }
  }
}

/*
 * conv: real_conv2d
 * float32 1x2x4x6 -> float32 1x3x4x6
 * element-wise operators inlined
 */
void net_conv(const float *restrict in0, const float *restrict weight, const float *restrict bias, float *restrict out) {
  float total;
  for (int32_t o = 0; o < 3; ++o) {
    for (int32_t y = 0; y < 4; ++y) {
      for (int32_t z = 0; z < 6; ++z) {
        total = 0.000000e+00f;
        int32_t t3 = (y * 6);
        for (int32_t ax4 = 0; ax4 < 2; ++ax4) {
          for (int32_t ax5 = 0; ax5 < 3; ++ax5) {
            for (int32_t ax6 = 0; ax6 < 3; ++ax6) {
              int32_t t1 = (y + ax5);
              int32_t t2 = (z + ax6);
              float condval;
              if ((((1 <= t1) && (t1 < 5)) && (1 <= t2)) && (t2 < 7)) {
                condval = in0[((((((ax4 * 24) + t3) + (ax5 * 6)) + z) + ax6) - 7)];
              } else {
                condval = 0.000000e+00f;
              }
              total = (total + (condval * weight[((((o * 18) + (ax4 * 9)) + (ax5 * 3)) + ax6)]));
            }
          }
        }
        out[(((o * 24) + t3) + z)] = (total + bias[o]);
      }
    }
  }
}
