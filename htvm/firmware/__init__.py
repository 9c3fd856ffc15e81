"""Building programs from generated C: project folders, flags, linker script, compiler, sizes."""
