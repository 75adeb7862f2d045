"""`eventide init`: a sample of data looked at, and a script to start with."""
