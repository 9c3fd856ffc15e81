"""From placed operators to TVM's regions, and from a region to `byoc_dory`."""
