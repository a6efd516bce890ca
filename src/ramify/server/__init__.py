"""Ramify over HTTP: models, answers, reasons and reviews, and a web page for the people who classify.

Needs ``ramify[serve]``; the review store and the keys work without it, since commands use them, too.
"""
