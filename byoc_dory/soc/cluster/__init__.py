"""A cluster of cores that run kernels together on tiles in L1, for SoCs that have one."""
