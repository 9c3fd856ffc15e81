/* Arithmetic in C that a GCC for the LX106 expects in its chip's ROM. */
#ifndef HTVM_LX106_H
#define HTVM_LX106_H

#include <stdint.h>

uint64_t htvm_lx106_long_product(uint64_t left, uint64_t right);
uint32_t htvm_lx106_quotient(uint32_t dividend, uint32_t divisor);
float htvm_lx106_float_product(float left, float right);
float htvm_lx106_float_sum(float left, float right);

#endif
