"""What an operator must know of the run: that it is paused, and that it goes by another spec, now or soon."""

from __future__ import annotations

import logging

from node.chain import RunChain
from node.errors import OtherTerms
from protocol.ids import Epoch, Hash32
from protocol.terms import terms_at

logger = logging.getLogger(__name__)


class RunWatch:
    """Says each thing once.

    Args:
        spec_hash: of the spec in the node's run file.
    """

    def __init__(self, chain: RunChain, spec_hash: Hash32) -> None:
        self._chain = chain
        self._mine = spec_hash
        self._paused_since: int | None = None
        self._warned: set[tuple[Epoch, Hash32, bool]] = set()

    def look(self) -> None:
        """To be called after each poll.

        Raises:
            OtherTerms: the run goes by another spec in this epoch; whatever this node did now would count against it.
        """
        self._look_at_pause()
        schedule, epoch = self._chain.schedule(), Epoch(max(1, self._chain.epoch))
        present = terms_at(schedule, epoch)
        if present is not None and present.spec_hash != self._mine:
            begins = [each.from_epoch for each in schedule if each.spec_hash == self._mine]
            raise OtherTerms(present, begins=begins[-1] if begins else None, epoch=epoch)
        for terms in schedule:
            is_next = terms.from_epoch == epoch + 1
            warning = (terms.from_epoch, terms.spec_hash, is_next)
            if (
                terms.from_epoch > epoch
                and terms.spec_hash != self._mine
                and warning not in self._warned
            ):
                self._warned.add(warning)
                logger.warning(
                    "from epoch %d on the run goes by another spec, 0x%s: get its run file and start again with it then%s",
                    terms.from_epoch,
                    terms.spec_hash.hex(),
                    "; that is the next epoch" if is_next else "",
                )

    def _look_at_pause(self) -> None:
        chain, before = self._chain, self._paused_since
        self._paused_since = since = chain.paused_since
        if since is not None and since != before:
            left_s = since + chain.clock.params.pause_most_s - chain.block_time
            logger.warning(
                "the run is paused: nothing is sent until it goes on, which anyone can make it do in %d s",
                max(0, left_s),
            )
        elif since is None and before is not None:
            logger.warning("the run goes on; it was paused for %d s", chain.block_time - before)
