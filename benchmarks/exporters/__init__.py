"""Networks as the real exporters write them: torch with onnxruntime's quantizer, and Keras."""
