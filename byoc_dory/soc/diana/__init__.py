"""DIANA: an RV32 host, a digital 16x16 array and an analog in-memory core (HTVM paper III-C)."""
