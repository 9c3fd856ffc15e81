"""ExecuTorch with its operators for Cortex-M beside ours: instructions, flash, RAM."""
