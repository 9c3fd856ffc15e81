"""From generated C to a program: project folders, flags, linker script, compiler, sizes."""
