"""The outlines of a memory: trees of headlines and texts, as editors have them, stored node by node."""
