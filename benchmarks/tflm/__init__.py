"""TFLite Micro on the same emulated core: instructions, flash and RAM beside ours."""
