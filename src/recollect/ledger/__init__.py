"""The ledger: commits, heads, changes and the Merkle trie. What is true, without I/O."""
