"""The evidence of few observations in one compiled loop (numba, optional): ``loading`` says whether it is there."""
