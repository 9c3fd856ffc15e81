"""The choice of a core for each layer, made before retargeting."""
