"""Prodding: early answers and what they are worth, as the thesis measured them (chapter 4)."""
