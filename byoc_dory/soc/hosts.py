"""Host cores shared by several SoC descriptions."""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.soc.cores import Host, HostCost

CV32E40P = Host(
    name="RV32IMC host (CV32E40P timing)",
    isa="rv32imc",
    # assumed: generous for generated code, which is not recursive.
    stack=4_096,
    # derived: measured on the simulated host, our schedules (tests/soc/test_host_cost.py); add:
    # fitted to the published CPU column (compiled with XpulpV2), as ours are fused into convs.
    cost=HostCost(
        conv_mac=3.0,
        pointwise_mac=3.0,
        dense_mac=3.3,
        depthwise_mac=4.7,
        add_element=7.8,
        pool_element=3.0,
        softmax_element=60.0,
        move_element=6.0,
        # Derived on the simulated host: dequantize 130, quantize 440 (no floating-point unit).
        real_element=260.0,
        layout_byte=3.8,
    ),
)
"""A core with 32-bit integer instructions; its timing is that of the RTL of the CV32E40P."""

CV32E40P_SIMD = replace(
    CV32E40P,
    name="RV32IMC host with CORE-V SIMD (CV32E40P timing)",
    corev=True,
    # derived: measured as above, with dot products of four bytes (htvm/aot/intrinsics.py).  An
    # add is what one by shift adds to its convolution; pools, softmax, moves, reals and layouts
    # gain nothing.
    cost=replace(
        CV32E40P.cost,
        conv_mac=0.6,
        pointwise_mac=0.5,
        dense_mac=0.75,
        depthwise_mac=3.0,
        add_element=6.7,
    ),
)
"""The same core with its PULP extensions (SIMD, multiply-accumulate, post-increment and others)."""
