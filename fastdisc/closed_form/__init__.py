"""Classifiers that are closed-form functions of class moments: Gaussian discriminants, Fisher's
discriminant, least squares and naive Bayes."""
