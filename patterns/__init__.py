"""TVM's pattern language and the layers of `byoc_dory`: operators, reading, dispatch, regions."""
