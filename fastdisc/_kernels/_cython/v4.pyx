include "kernels.pxi"
