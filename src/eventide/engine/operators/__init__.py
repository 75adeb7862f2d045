"""Operators: what a plan is made of while it runs, one file for each kind."""
