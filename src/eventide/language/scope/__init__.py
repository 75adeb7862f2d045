"""Names: what a SELECT can read and sees, and what each name in an expression stands for."""
