"""TVM operators and the layers of `byoc_dory`: operator classes, reading, dispatch, regions."""
