"""Inputs as streaming DataFrames, and what Spark says when it cannot open one."""
