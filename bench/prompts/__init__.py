"""What reaches a prompt: questions of our own about changed facts, repeated questions and their like.

Everything is made up, in the languages that are read. The sets were written before the rules that they measure.
"""
