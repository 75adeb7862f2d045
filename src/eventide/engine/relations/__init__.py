"""Relations: rows that a step leaves for another or keeps, wherever they are, and who computes over them."""
