"""Siracusa: a cluster of cores with SIMD instructions, and the convolution engine N-EUREKA."""
