"""What a program costs by plan: machine profiles, formulas of collectives, schedule and critical path, memory.

Everything here is *planned*: a number says which model it comes from, and nothing is measured but by `calibrate`.
"""
