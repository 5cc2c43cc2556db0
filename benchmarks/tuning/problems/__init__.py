"""What is tuned: models of scikit-learn that train in milliseconds."""
