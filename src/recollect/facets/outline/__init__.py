"""Trees of headlines and texts in Org, Markdown and JSON, with a hash of every subtree."""
