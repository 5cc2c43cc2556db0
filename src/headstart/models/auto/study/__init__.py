"""What AUTO works out anew as a study goes on: which sources are asked, and the plain process."""
