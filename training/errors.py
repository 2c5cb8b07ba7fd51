"""Everything that `training` raises on purpose.

PayloadError      a peer's payload is not a canonical update      (rejected, never retried)
BlobError         a peer's checkpoint or local state is malformed (rejected, never retried)
DatasetError      the data set on disk is missing or damaged      (the operator must act)
ModelError        a model that can't be read, built or written    (the operator must act)
TrainingDiverged  the numbers became NaN or infinite              (the operator must act)
CrewError         processes that train together can't, or not on  (the operator must act)
"""

from __future__ import annotations

from protocol.errors import OperatorError, Rejected


class PayloadError(Rejected):
    """The bytes are no canonical payload for this model and codec."""


class BlobError(Rejected):
    """The bytes are no checkpoint or local state of this model."""


class DatasetError(OperatorError):
    """The data set can't be made or read; `fix` says what to do."""


class ModelError(OperatorError):
    """A model can't be read, built or written; `fix` says what to do."""


class TrainingDiverged(OperatorError):
    """A loss, gradient or update is not finite."""


class CrewError(OperatorError):
    """Processes that were to train together are too many, or one of them is gone."""
