"""Pure rules on numbers: who is accepted and selected, how peers are scored, who is paid what.

Nothing here does I/O, reads a clock or draws its own randomness: seeds come as
`protocol.beacon.Draw`, and the same inputs give the same outputs. Two kinds of rule live here.
What every node must agree on (acceptance, selection, consensus, settlement) is integers only. What
is each validator's own judgement (ratings, mu, weights up to the u16 vector) uses floats.

    acceptance  attestations to the accepted set          checks       visible faults
    selection   the set that is aggregated                uniqueness   reused and overlapping work
    sampling    who is evaluated, and on which samples    rating       OpenSkill Plackett-Luce
    computation proof of computation                      weights      scores to a u16 vector
    book        a validator's state, round by round       consensus    the median of the vectors
    settlement  every leaf of an epoch                    peerrank     the validators' reputation
    report      what a validator publishes                replay       and what follows from it
    explain     a score factor by factor                  wording, advice  the same for operators
"""
