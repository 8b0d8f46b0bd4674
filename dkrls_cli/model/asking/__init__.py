"""What a user asks of a model, made into queries, and the labels of the answers."""
