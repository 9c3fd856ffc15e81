"""Reading files and modules from other tools into the integer form."""
