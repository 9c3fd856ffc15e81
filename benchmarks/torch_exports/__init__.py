"""Networks of torch, quantized by torchao, and how near HTVM's integers are to torch's floats.

Runs in an environment with the extra ``torch``.
"""
