"""Which core each layer shall run on, decided before retargeting."""
