"""Where results go. `sink` has the contract; every other module is one sink."""
