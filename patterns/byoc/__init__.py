"""Building TVM's regions from placed operators, and passing regions to `byoc_dory`."""
