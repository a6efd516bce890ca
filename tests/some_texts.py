"""A few texts with labels of two levels, easy to learn."""

TEXTS = ["sweet red apple", "green apple pie", "rye bread crust", "white bread loaf", "strong black tea", "tea with milk"] * 4
LABELS = ["food/fruit", "food/fruit", "food/bread", "food/bread", "drink/tea", "drink/tea"] * 4
PATHS = [tuple(label.split("/")) for label in LABELS]
