"""Models in which the answers to a document compete with each other in one problem."""
