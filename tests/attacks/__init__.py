"""Attacks on everything that reads files or requests: damaged and hostile input must end in an answer or in one clear sentence.

``python -m attacks.run`` tries random cases; ``test_attacks.py`` tries the known ones, and some random ones.
"""
