"""Storage: folders, local or not, in which whole files appear at once, and who holds one."""
