/* constant: net_ita_gelu_table[256], int8: table of ita_gelu, int8 256 */
/* constant: net_table_map_table[256], int8: table of table_map, int8 256 */

/*
 * gelu: integer_gelu
 * int8 4x12 -> int32 4x12
 * element-wise operators inlined
 */
void net_gelu(const int8_t *restrict in0, int32_t *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      int32_t condval;
      if (0 < ((int32_t)in0[t1])) {
        int32_t v0 = ((int32_t)in0[t1]) - 42;
        condval = (1929 - (((v0) < (0) ? (v0) : (0)) * ((v0) < (0) ? (v0) : (0))));
      } else {
        int32_t condval_1;
        if (((int32_t)in0[t1]) < 0) {
          int32_t v1 = (0 - ((int32_t)in0[t1])) - 42;
          condval_1 = ((((v1) < (0) ? (v1) : (0)) * ((v1) < (0) ? (v1) : (0))) - 1929);
        } else {
          condval_1 = 0;
        }
        condval = condval_1;
      }
      out[t1] = (((int32_t)in0[t1]) * ((condval + 1929) >> 1));
    }
  }
}

/*
 * hard_swish: integer_hard_swish
 * int8 4x12 -> int32 4x12
 * element-wise operators inlined
 */
void net_hard_swish(const int8_t *restrict in0, int32_t *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      int32_t v0 = ((int32_t)in0[t1]) + 122;
      int32_t v1 = (v0) < (244) ? (v0) : (244);
      out[t1] = ((((int32_t)in0[t1]) * ((v1) > (0) ? (v1) : (0))) * 42);
    }
  }
}

/*
 * divide: integer_divide
 * int8 4x12 -> int32 4x12
 * element-wise operators inlined
 */
void net_divide(const int8_t *restrict in0, int32_t *restrict out) {
  int32_t narrow0;
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      int64_t condval;
      if (((int64_t)in0[t1]) < (int64_t)0) {
        condval = ((((int64_t)in0[t1]) * (int64_t)3276800000) - (int64_t)400000);
      } else {
        condval = (((int64_t)in0[t1]) * (int64_t)3276800000);
      }
      narrow0 = ((int32_t)(condval / (int64_t)400001));
      out[t1] = narrow0;
    }
  }
}

/*
 * ita_gelu: ita_gelu
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_ita_gelu(const int8_t *restrict in0, const int8_t *restrict table, int8_t *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      out[t1] = table[(((int32_t)in0[t1]) + 128)];
    }
  }
}

/*
 * table_map: table
 * int8 4x12 -> int8 4x12
 * element-wise operators inlined
 */
void net_table_map(const int8_t *restrict in0, const int8_t *restrict table, int8_t *restrict out) {
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    for (int32_t i1 = 0; i1 < 12; ++i1) {
      int32_t t1 = ((i0 * 12) + i1);
      out[t1] = table[(((int32_t)in0[t1]) + 128)];
    }
  }
}
