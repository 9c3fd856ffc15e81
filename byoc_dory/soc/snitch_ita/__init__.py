"""The Snitch cluster with ITA: eight cores, a DMA core, and an attention accelerator."""
