"""The laboratory: a whole subnet in one process, to try what the scoring rules pay.

    catalogue  the scenarios            subnet     rounds, epochs, consensus and pay
    scenario   what one consists of     judges     validators, honest and not
    mechanism  peers as numbers         claims     what must hold, and whether it does
    school     peers that train         run        seeds, twins, JSON
    table, picture                      what is shown

Everything that decides about money is the subnet's own code: `scoring` rates, weighs, selects and
settles, `validator.evaluation` examines, `training` trains. Only the chain is missing: beacons are
a hash chain from the seed, and the windows are kept by everybody who is not there to break them.
"""
