#include "cluster_kernels.h"
void cluster_depthwise(const void *args, uint32_t core, uint32_t cores) { (void)args;(void)core;(void)cores; }
