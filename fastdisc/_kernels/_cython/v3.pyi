from .kernels import *  # noqa: F403
