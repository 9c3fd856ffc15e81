"""Reading typed nodes from a Relax module in the integer form, in execution order."""
