"""Whether a node's spec is still the one that the run goes by."""

from __future__ import annotations

import logging

from node.chain import RunChain
from node.errors import OtherTerms
from protocol.ids import Epoch, Hash32
from protocol.terms import terms_at

logger = logging.getLogger(__name__)


class TermsWatch:
    """Compares a node's spec with the terms that the chain shows; warns of announced ones.

    Args:
        mine: hash of the spec in the node's run file.
    """

    def __init__(self, chain: RunChain, mine: Hash32) -> None:
        self._chain = chain
        self._mine = mine
        self._warned: set[tuple[Epoch, Hash32, bool]] = set()

    def look(self) -> None:
        """To be called after each poll.

        Raises:
            OtherTerms: the run goes by another spec in this epoch; whatever this node did now would count against it.
        """
        schedule, epoch = self._chain.schedule(), Epoch(max(1, self._chain.epoch))
        present = terms_at(schedule, epoch)
        if present is not None and present.spec_hash != self._mine:
            begins = [each.from_epoch for each in schedule if each.spec_hash == self._mine]
            raise OtherTerms(present, begins=begins[-1] if begins else None, epoch=epoch)
        for terms in schedule:
            is_next = terms.from_epoch == epoch + 1
            warning = (terms.from_epoch, terms.spec_hash, is_next)
            if terms.from_epoch > epoch and terms.spec_hash != self._mine:
                if warning not in self._warned:
                    logger.warning(
                        "from epoch %d on the run goes by another spec, 0x%s: get its run file and start again with it then%s",
                        terms.from_epoch,
                        terms.spec_hash.hex(),
                        "; that is the next epoch" if is_next else "",
                    )
                self._warned.add(warning)
