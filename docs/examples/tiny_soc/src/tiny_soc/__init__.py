"""The SoC tiny: description, rules, tiling, and C, each in a file of its own."""
