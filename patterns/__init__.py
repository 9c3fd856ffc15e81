"""Per operator: how it is written, found again, and read into a layer."""
