/* constant: net_conv_bias[10], int32: bias of conv, int32 10 */
/* constant: net_conv_multiplier[10], int32: multiplier of conv, int32 10 */
/* constant: net_conv_shift[10], int32: shift of conv, int32 10 */
/* constant: net_conv_weight[720], int8: weight of conv, int8 3x3x8x10 */
/* constant: net_pointwise_bias[4], int32: bias of pointwise, int32 4 */
/* constant: net_pointwise_weight[40], int8: weight of pointwise, int8 1x1x10x4 */

/*
 * conv: conv2d + add + tflite_requantize + add + clip + astype
 * int8 1x5x6x8 -> int8 1x5x6x10
 * not scheduled
 */
void net_conv(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict multiplier, const int32_t *restrict shift, int8_t *restrict out, int8_t *restrict workspace_0, int32_t *restrict workspace_1) {
  for (int32_t i1 = 0; i1 < 7; ++i1) {
    for (int32_t i2 = 0; i2 < 8; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        int32_t t1 = (i2 * 8);
        int8_t condval;
        if ((((1 <= i1) && (i1 < 6)) && (1 <= i2)) && (i2 < 7)) {
          condval = in0[((((i1 * 48) + t1) + i3) - 56)];
        } else {
          condval = (int8_t)0;
        }
        workspace_0[(((i1 * 64) + t1) + i3)] = condval;
      }
    }
  }
  for (int32_t yy = 0; yy < 5; ++yy) {
    for (int32_t xx = 0; xx < 6; ++xx) {
      for (int32_t ff = 0; ff < 10; ++ff) {
        for (int32_t ry = 0; ry < 3; ++ry) {
          for (int32_t rx = 0; rx < 3; ++rx) {
            for (int32_t rc = 0; rc < 8; ++rc) {
              int32_t t2 = (((yy * 60) + (xx * 10)) + ff);
              if (((ry == 0) && (rx == 0)) && (rc == 0)) {
                workspace_1[t2] = 0;
              }
              workspace_1[t2] = (workspace_1[t2] + (((int32_t)workspace_0[(((((yy * 64) + (ry * 64)) + (xx * 8)) + (rx * 8)) + rc)]) * ((int32_t)weight[((((ry * 240) + (rx * 80)) + (rc * 10)) + ff)])));
            }
          }
        }
      }
    }
  }
  for (int32_t ax1 = 0; ax1 < 5; ++ax1) {
    for (int32_t ax2 = 0; ax2 < 6; ++ax2) {
      for (int32_t ax3 = 0; ax3 < 10; ++ax3) {
        int32_t t3 = (((ax1 * 60) + (ax2 * 10)) + ax3);
        workspace_1[t3] = (workspace_1[t3] + bias[ax3]);
      }
    }
  }
  for (int32_t i1_1 = 0; i1_1 < 5; ++i1_1) {
    for (int32_t i2_1 = 0; i2_1 < 6; ++i2_1) {
      for (int32_t i3_1 = 0; i3_1 < 10; ++i3_1) {
        int32_t t4 = (((i1_1 * 60) + (i2_1 * 10)) + i3_1);
        workspace_1[t4] = (((((int32_t)(((((int64_t)workspace_1[t4]) * ((int64_t)multiplier[i3_1])) + (int64_t)1073741824) >> (int64_t)31)) + ((int32_t)(((uint32_t)1) << ((uint32_t)((0 - shift[i3_1]) - 1))))) - ((int32_t)(((int32_t)(((((int64_t)workspace_1[t4]) * ((int64_t)multiplier[i3_1])) + (int64_t)1073741824) >> (int64_t)31)) < 0))) >> (shift[i3_1] * -1));
      }
    }
  }
  for (int32_t ax1_1 = 0; ax1_1 < 5; ++ax1_1) {
    for (int32_t ax2_1 = 0; ax2_1 < 6; ++ax2_1) {
      for (int32_t ax3_1 = 0; ax3_1 < 10; ++ax3_1) {
        int32_t t5 = (((ax1_1 * 60) + (ax2_1 * 10)) + ax3_1);
        workspace_1[t5] = (workspace_1[t5] + 3);
      }
    }
  }
  for (int32_t i1_2 = 0; i1_2 < 5; ++i1_2) {
    for (int32_t i2_2 = 0; i2_2 < 6; ++i2_2) {
      for (int32_t i3_2 = 0; i3_2 < 10; ++i3_2) {
        int32_t t6 = (((i1_2 * 60) + (i2_2 * 10)) + i3_2);
        int32_t v0 = workspace_1[t6];
        int32_t v1 = (v0) < (127) ? (v0) : (127);
        workspace_1[t6] = ((v1) > (0) ? (v1) : (0));
      }
    }
  }
  for (int32_t i1_3 = 0; i1_3 < 5; ++i1_3) {
    for (int32_t i2_3 = 0; i2_3 < 6; ++i2_3) {
      for (int32_t i3_3 = 0; i3_3 < 10; ++i3_3) {
        int32_t t7 = (((i1_3 * 60) + (i2_3 * 10)) + i3_3);
        out[t7] = ((int8_t)workspace_1[t7]);
      }
    }
  }
}

/*
 * pointwise: conv2d + add + right_shift + clip + astype
 * int8 1x5x6x10 -> int8 1x5x6x4
 * not scheduled
 */
void net_pointwise(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, int8_t *restrict out, int8_t *restrict workspace_0, int32_t *restrict workspace_1) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
      for (int32_t i3 = 0; i3 < 10; ++i3) {
        int32_t t1 = (((i1 * 60) + (i2 * 10)) + i3);
        workspace_0[t1] = in0[t1];
      }
    }
  }
  for (int32_t yy = 0; yy < 5; ++yy) {
    for (int32_t xx = 0; xx < 6; ++xx) {
      for (int32_t ff = 0; ff < 4; ++ff) {
        for (int32_t rc = 0; rc < 10; ++rc) {
          int32_t t2 = (((yy * 24) + (xx * 4)) + ff);
          if (rc == 0) {
            workspace_1[t2] = 0;
          }
          workspace_1[t2] = (workspace_1[t2] + (((int32_t)workspace_0[(((yy * 60) + (xx * 10)) + rc)]) * ((int32_t)weight[((rc * 4) + ff)])));
        }
      }
    }
  }
  for (int32_t ax1 = 0; ax1 < 5; ++ax1) {
    for (int32_t ax2 = 0; ax2 < 6; ++ax2) {
      for (int32_t ax3 = 0; ax3 < 4; ++ax3) {
        int32_t t3 = (((ax1 * 24) + (ax2 * 4)) + ax3);
        workspace_1[t3] = (workspace_1[t3] + bias[ax3]);
      }
    }
  }
  for (int32_t ax1_1 = 0; ax1_1 < 5; ++ax1_1) {
    for (int32_t ax2_1 = 0; ax2_1 < 6; ++ax2_1) {
      for (int32_t ax3_1 = 0; ax3_1 < 4; ++ax3_1) {
        int32_t t4 = (((ax1_1 * 24) + (ax2_1 * 4)) + ax3_1);
        workspace_1[t4] = (workspace_1[t4] >> 9);
      }
    }
  }
  for (int32_t i1_1 = 0; i1_1 < 5; ++i1_1) {
    for (int32_t i2_1 = 0; i2_1 < 6; ++i2_1) {
      for (int32_t i3_1 = 0; i3_1 < 4; ++i3_1) {
        int32_t t5 = (((i1_1 * 24) + (i2_1 * 4)) + i3_1);
        int32_t v0 = workspace_1[t5];
        int32_t v1 = (v0) < (127) ? (v0) : (127);
        workspace_1[t5] = ((v1) > (-128) ? (v1) : (-128));
      }
    }
  }
  for (int32_t i1_2 = 0; i1_2 < 5; ++i1_2) {
    for (int32_t i2_2 = 0; i2_2 < 6; ++i2_2) {
      for (int32_t i3_2 = 0; i3_2 < 4; ++i3_2) {
        int32_t t6 = (((i1_2 * 24) + (i2_2 * 4)) + i3_2);
        out[t6] = ((int8_t)workspace_1[t6]);
      }
    }
  }
}
