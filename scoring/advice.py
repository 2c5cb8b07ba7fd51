"""What a miner's operator can do about each fault and about each factor of the score."""

from __future__ import annotations

from collections.abc import Mapping

from scoring.checks import Fault

FAULT_ADVICE: Mapping[Fault, str] = {
    Fault.BAD_SIGNATURE: "the submission was not signed by the operator that the chain names for the round: check which key the node runs with, and when a new operator starts to count",
    Fault.NOT_COMMITTED: "nothing, or something else, was committed before the put deadline: give the operator key native currency for gas, and look for a late or stuck commit in the node's log",
    Fault.COMMIT_MISMATCH: "the commit and the signed submission differ: run one node per key, from one state folder",
    Fault.EQUIVOCATION: "two submissions were signed for one round, which is slashed: never run two nodes with one key",
    Fault.MISSING: "it was committed and could not be fetched before the publish deadline: check that the public endpoint is reachable from outside and the uplink fast enough",
    Fault.FORMAT: "the payload or the local state did not decode to what was signed: check disk and memory, and run the run's version of the program",
    Fault.OVERSIZE: "the payload is larger than the codec ever makes one: run the unchanged program",
    Fault.WRONG_RUN: "the submission is another run's: check the run file",
    Fault.WRONG_SPEC: "the submission goes by another spec: take the current run file",
    Fault.WRONG_ROUND: "the submission names another round: check that the node's chain follows",
    Fault.WRONG_BEACON: "it trained under another beacon: wait for more confirmations (--confirmations)",
    Fault.BEHIND: "it started from an older model: the node was not up to date when the round began; check its connection and that a round's work fits into the train window",
    Fault.WRONG_ROOT: "it started from a model that nobody else has: remove the state's checkpoints, so that the finalised one is fetched, and check memory and threads",
    Fault.WRONG_STEPS: "another number of inner steps than the spec's: run the unchanged program",
    Fault.WRONG_DATA: "it trained on other samples than assigned, or on another data set, which is slashed: let the node fetch the run's data set",
    Fault.LOCAL_STATE: "the local state does not continue the last accepted one: keep the state folder over restarts",
    Fault.REUSED_PAYLOAD: "the payload was handed in before, by this miner or another: hand in new work",
    Fault.OVERLAP: "the update shares too many indices with another one that gains more on its own data: train instead of copying",
}
FACTOR_ADVICE: Mapping[str, str] = {
    "barred": "a barred miner is paid nothing in that epoch; the fault below says what to mend",
    "presence": "be accepted in every round; each one missed takes off its part of the epoch",
    "standing": "mend the failed checks below; a clean accepted round takes one strike back",
    "computation": "the updates must help the miner's own assigned samples more than unknown ones: train all assigned samples with all inner steps, from the round's model, and keep the local state",
    "improvement": "the updates must lower the loss on unknown data in most evaluations: check the training loss in the node's log, the learning rate and that the local state is carried over",
    "rating": "gain more on unknown data than the others do: no step left out, feedback carried over, the spec's numerics",
    "evaluations": "it was not sampled in this epoch or before: every accepted round makes the next draw likelier to take it",
}
