# Codes are checked where kernels are entered: the code without Python never sees an unknown one.

cdef int checked(str name, object code, str kind) except -1:
    """The code as an int; ValueError if it is unknown."""
    if code not in ENUMS[kind].values():
        raise ValueError(f"the cython backend has no {name} {int(code)}")
    return code
