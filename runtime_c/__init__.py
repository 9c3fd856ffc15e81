"""C sources of the runtime, shipped as package data; there is no Python in here."""
