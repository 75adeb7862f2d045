"""Early answers: prods, how they are answered from open slices, and what the answers were worth."""
