"""Linear classifiers that are trained row by row: perceptron, adaline, stochastic gradient
descent."""
