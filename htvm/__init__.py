"""HTVM: quantized networks on microcontroller-class SoCs with accelerators."""
