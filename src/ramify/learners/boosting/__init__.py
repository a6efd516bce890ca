"""Boosting of decision stumps on the presence of terms: AdaBoost.MH over all classes, and TreeBoost.MH at every inner node."""
