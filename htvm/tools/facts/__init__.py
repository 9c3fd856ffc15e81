"""Facts about a build for its report: each file computes one kind of plain value."""
