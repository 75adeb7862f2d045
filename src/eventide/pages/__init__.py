"""Pages that need no server: reports in one file, and what a notebook shows of a running query."""
