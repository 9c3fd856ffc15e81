"""From a Relax module in the integer form to typed nodes, in execution order."""
