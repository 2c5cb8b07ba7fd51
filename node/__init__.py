"""What every role does alike.

Follow the chain, hold and advance the model, keep the journal, publish and fetch submissions, take
turns at the chores that everybody needs, and find back after an absence. The roles above decide
what to do with it; the capabilities below know nothing of each other.
"""
