"""The pages: what each of them shows and what it takes."""
