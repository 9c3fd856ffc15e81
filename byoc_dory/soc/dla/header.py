"""The instruction set as a C header, ``runtime_c/soc/dla/dla_isa.h``.

    python -m byoc_dory.soc.dla.header

writes it again after `isa` was changed; a test compares them.
"""

from __future__ import annotations

from pathlib import Path

from byoc_dory.soc.dla.isa import FLAGS, INSTRUCTIONS, REGISTERS, SET, SLOTS

KINDS = ("CONV", "DEPTH", "REQUANT", "OTHER", "DMA")
"""What cycles are counted as, in the order of the simulator's counters."""


def render_isa() -> str:
    """Return the text of ``dla_isa.h``."""
    lines = [
        "/* dla: the instruction set.  Written by byoc_dory.soc.dla.header from the table in",
        " * byoc_dory/soc/dla/isa.py; do not edit. */",
        "#ifndef DLA_ISA_H",
        "#define DLA_ISA_H",
        "",
        "/* configuration registers */",
        "enum {",
        *(f"    DLA_{register.name}, /* {register.meaning} */" for register in REGISTERS),
        "    DLA_CONFIG_REGISTERS",
        "};",
        "",
        "/* what the system addresses of transfers belong to */",
        f"enum {{ DLA_SLOTS = {len(SLOTS)} }};",
        "",
        "/* flags of an instruction word */",
        "enum {",
        *(f"    DLA_FLAG_{flag.name} = 0x{flag.mask:x}, /* {flag.meaning} */" for flag in FLAGS),
        "};",
        "",
        "/* what cycles are counted as */",
        "enum { " + ", ".join(f"DLA_KIND_{kind}" for kind in KINDS) + ", DLA_KINDS };",
        "",
        "/* opcodes: bits 31 to 24 of a word */",
        "enum {",
        f"    DLA_SET = 0x{SET:02x}, /* the word after it goes to the register of bits 7 to 0 */",
        *(
            f"    DLA_{each.name} = 0x{each.opcode:02x}, /* {each.meaning} */"
            for each in INSTRUCTIONS
        ),
        "};",
        "",
        "/* name, opcode, kind, flags it may have, bit set of the registers it reads (without",
        " * those that flags add) */",
        "#define DLA_INSTRUCTIONS(each) \\",
    ]
    for each in INSTRUCTIONS:
        flags = sum(flag.mask for flag in each.flags)
        reads = sum(1 << REGISTERS.index(r) for r in REGISTERS if r.name in each.registers(0))
        end = "" if each is INSTRUCTIONS[-1] else " \\"
        lines.append(
            f"    each({each.name}, 0x{each.opcode:02x}u, DLA_KIND_{each.kind}, 0x{flags:x}u, "
            f"0x{reads:08x}u){end}"
        )
    lines += ["", "#define DLA_REGISTER_NAMES \\"]
    lines.append("    " + ", ".join(f'"{register.name}"' for register in REGISTERS))
    return "\n".join([*lines, "", "#endif", ""])


def _main() -> None:
    folder = Path(__file__).resolve().parents[3] / "runtime_c" / "soc" / "dla"
    (folder / "dla_isa.h").write_text(render_isa(), encoding="utf-8")


if __name__ == "__main__":
    _main()
