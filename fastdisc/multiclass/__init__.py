"""Classifiers of K classes made of two-class discriminants, and the reject option.

`base.py` has what one-versus-rest and pairwise classifiers share, `decisions.py` the rules that
turn scores into classes, `shared_fit.py` the joint training of many logistic problems over shared
rows. Estimators of this package may import those of `linear`; nothing below imports this package,
except that `geometry` reads `decisions`.
"""
