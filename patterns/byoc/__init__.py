"""Building TVM's regions from placed operators, and passing regions to `byoc_dory`."""

LIBRARY = "htvm.region_library"
"""Name in TVM's registry of what makes a library of regions' functions (`htvm.relax.library`)."""
