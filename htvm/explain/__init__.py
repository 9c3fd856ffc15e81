"""What could be changed about a model's layers, and what each change would bring."""
