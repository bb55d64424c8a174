"""Linear classifiers trained by minimising a sum of losses: logistic regression, its
cross-validated form, and discrimination by regression."""
