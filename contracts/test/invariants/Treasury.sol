// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Role} from "../../src/interfaces/IRun.sol";
import {Leaf, Opening} from "../../src/interfaces/ISettlement.sol";
import {Ledger} from "./Ledger.sol";

/// @notice Actions around stakes, pay and the clock: honest participants, liars who post settlements, and a governor.
abstract contract Treasury is Ledger {
    uint256 internal claimed;
    uint256 internal refunded;
    uint256 internal fees;
    mapping(address account => uint64) internal exitTime;
    mapping(address account => uint64) internal exitEpoch;
    mapping(address account => uint256) internal locks;

    // ---------------------------------------------------------------- clock and governor

    function actPass(uint16 seconds_) external {
        goTo(uint64(block.timestamp + 1 + seconds_ % 300));
    }

    function actPause() external {
        vm.prank(governor);
        epochs.pause();
    }

    function actResume(bool byGovernor) external {
        if (!byGovernor) goTo(uint64(block.timestamp) + 300);
        vm.prank(byGovernor ? governor : anyone);
        epochs.resume();
    }

    // ---------------------------------------------------------------- stakes

    function actDeposit(uint8 who, uint64 amount) external {
        vm.prank(actorAt(who).account);
        vault.deposit(uint256(amount) * 3);
    }

    function actUnbond(uint8 who, uint256 amount) external {
        address account = actorAt(who).account;
        uint256 active = vault.activeOf(account);
        amount = bound(amount, 0, amount % 4 == 0 ? active : active / 3);
        vm.prank(account);
        vault.requestUnbond(amount);
        must(!epochs.paused(), "an exit was queued in a pause");
        (exitTime[account], exitEpoch[account]) = (epochs.time(), epochs.currentEpoch());
    }

    function actWithdraw(uint8 who, uint8 wait) external {
        address account = actorAt(who).account;
        if (wait % 4 == 3) _haveABucket(account);
        if (wait % 4 != 0) toTime(exitTime[account] + params().unbondingS + (wait % 2));
        if (wait % 4 == 3) _voidUpTo(exitEpoch[account]);
        (uint256 bucket,) = vault.unbondingOf(account);
        uint256 before = token.balanceOf(account);
        vm.prank(account);
        uint256 amount = vault.withdraw();
        must(amount == bucket && token.balanceOf(account) == before + amount, "another sum than the bucket's came out");
        must(!epochs.paused(), "stake left in a pause");
        must(epochs.time() > exitTime[account] + params().unbondingS, "stake left before its time");
        must(epochs.currentEpoch() > exitEpoch[account] + 3, "stake left inside the fraud window");
        must(rewards.nextEpoch() > exitEpoch[account], "stake left before its epoch was settled");
        must(locks[account] == 0, "stake left while a game was open");
    }

    function _haveABucket(address account) private {
        (uint256 bucket,) = vault.unbondingOf(account);
        if (bucket != 0 || vault.activeOf(account) == 0 || epochs.paused()) return;
        vm.prank(account);
        vault.requestUnbond(1);
        (exitTime[account], exitEpoch[account]) = (epochs.time(), epochs.currentEpoch());
    }

    function _voidUpTo(uint64 epoch) private {
        for (uint64 next = rewards.nextEpoch(); next <= epoch; ++next) {
            try rewards.voidEpoch(next) {}
            catch {
                return;
            }
        }
    }

    function actLock(uint8 who, bool open) external {
        address account = actorAt(who).account;
        if (!open && locks[account] == 0) return;
        vm.prank(address(disputes));
        open ? vault.lock(account) : vault.unlock(account);
        open ? ++locks[account] : --locks[account];
    }

    function actRegister(uint8 who) external {
        Actor memory a = actorAt(who);
        if (vault.activeOf(a.account) < 100 ether) {
            vm.prank(a.account);
            vault.deposit(100 ether);
        }
        vm.prank(a.account);
        registry.register(who % 6 < 3 ? Role.Miner : Role.Validator, a.operator, "", address(0), "");
    }

    /// @dev A judge's verdict of any size, with any bounty.
    function actSlash(uint8 who, uint256 amount, uint256 bounty, bool small) external {
        address account = actorAt(who).account;
        if (small || amount % 5 != 0) amount = amount % 10 ether;
        (uint256 supply, uint256 held, uint256 stake) =
            (token.totalSupply(), token.balanceOf(hunters[0]), stakeOf(account));
        vm.prank(amount % 2 == 0 ? address(verdicts) : address(scores));
        try vault.slash(account, amount, hunters[0], bounty) returns (uint256 taken) {
            must(taken == (amount < stake ? amount : stake), "not min(amount, stake) was taken");
            must(stakeOf(account) == stake - taken, "the stake did not shrink by what was taken");
            slashed += taken;
        } catch {
            must(epochs.paused(), "slashing failed");
        }
        slashPaid += token.balanceOf(hunters[0]) - held;
        slashBurned += supply - token.totalSupply();
    }

    // ---------------------------------------------------------------- pay

    function actFees(uint64 amount) external {
        rewards.addFees(amount);
        fees += amount;
    }

    function actChore(uint8 purpose) external {
        drawIt(epochs.currentRound() + 1, 1 + purpose % 2);
        refunded += rewards.withdrawRefunds(address(this));
    }

    function actPenalise(uint8 slot) external {
        uint64 epoch = rewards.nextEpoch();
        uint256 supply = token.totalSupply();
        scores.penaliseMissingReveal(epoch, slot % 3);
        slashed += supply - token.totalSupply();
        slashBurned += supply - token.totalSupply();
    }

    /// @dev One epoch from weights to finality or void; now and then there are false posts, and challenges of the right one.
    function actSettle(uint16[9] memory w, bool lie, uint8 victim) external {
        if (epochs.paused()) return;
        uint64 epoch = rewards.nextEpoch();
        toTime(epochs.epochEnd(epoch) + 1);
        if (epochs.time() > epochs.weightCommitDeadline(epoch)) {
            toTime(epochs.settlementVoidAt(epoch) + 1);
            rewards.voidEpoch(epoch);
            return;
        }
        _vote(epoch, w);
        if (!scores.hasQuorum(epoch)) return;
        buildHonest(epoch);
        if (lie && victim % 2 == 0) _lie(epoch, victim);
        buildHonest(epoch);
        if (epochs.time() > epochs.settlementVoidAt(epoch)) return;
        uint32 right = _post();
        if (lie && victim % 2 == 1) _postTooLate(epoch, victim);
        if (victim % 3 == 0) _challengeTheRight(epoch, right, (victim / 3) % 3);
        must(rewards.postOf(epoch, right).poster != address(0), "a right settlement fell");
        toTime(rewards.postOf(epoch, right).windowEnds + 1);
        uint256 supply = token.totalSupply();
        uint256 minted = token.totalMinted();
        rewards.finaliseSettlement(epoch, right);
        must(token.totalSupply() - supply == token.totalMinted() - minted, "finality burned something");
        must(rewards.finalRoot(epoch) == node(epoch, 13, 0).hash, "a false settlement is final");
        rewards.withdrawBonds(poster);
    }

    function _vote(uint64 epoch, uint16[9] memory w) private {
        bytes32 run = epochs.run();
        for (uint32 v = 0; v < 3; ++v) {
            address account = registry.slotAccount(Role.Validator, v, epoch);
            if (account == address(0)) continue;
            bytes memory weights = weightsOf(w[3 * v], w[3 * v + 1], w[3 * v + 2]);
            given[epoch][v] = weights;
            address operator = registry.operatorAt(account, epochs.currentRound());
            bytes32 root = scores.weightsRootOf(weights);
            vm.prank(operator);
            scores.commitWeights(epoch, keccak256(abi.encode(run, account, epoch, root, SALT)));
        }
        toTime(epochs.weightCommitDeadline(epoch) + 1);
        for (uint32 v = 0; v < 3; ++v) {
            address account = registry.slotAccount(Role.Validator, v, epoch);
            if (account != address(0)) scores.revealWeights(epoch, v, account, given[epoch][v], SALT);
        }
        toTime(epochs.weightRevealDeadline(epoch) + 1);
    }

    function _post() private returns (uint32 attempt) {
        uint256 supply = token.totalSupply();
        attempt = post(rewards.nextEpoch());
        otherBurned += supply - token.totalSupply();
    }

    /// @dev A leaf that pays too much, challenged.
    function _lie(uint64 epoch, uint8 victim) private {
        if (built[epoch].length == 0) return;
        Leaf storage leaf = built[epoch][victim % built[epoch].length];
        leaf.cumulative += 1 ether;
        uint32 index = leaf.index;
        _post();
        (uint256 supply, uint256 bonds) = (token.totalSupply(), rewards.bondsOf(challenger));
        challenge(epoch, index, 0);
        open(epoch, index, 0);
        must(!newestStands(), "a false settlement stood");
        // 20 and its own 2 tokens: 40 % of the poster's bond, the rest of it burned.
        must(rewards.bondsOf(challenger) - bonds == 10 ether, "not the bounty and the bond");
        must(supply - token.totalSupply() == 12 ether, "not the burned share");
        otherBurned += supply - token.totalSupply();
        rewards.withdrawBonds(challenger);
    }

    /// @dev Too late to become final: it burns when it is closed, or when the next epoch's post takes its place.
    function _postTooLate(uint64 epoch, uint8 victim) private {
        if (built[epoch].length == 0) return;
        Leaf storage leaf = built[epoch][victim % built[epoch].length];
        leaf.cumulative += 1 ether;
        _post();
        leaf.cumulative -= 1 ether;
    }

    function _challengeTheRight(uint64 epoch, uint32 attempt, uint32 index) private {
        vm.prank(challenger);
        rewards.challengeLeaf(epoch, attempt, index, 0);
        Opening memory o = openingOf(epoch, index, 0);
        rewards.openLeaf(epoch, attempt, index, 0, o);
    }

    function actClose(uint8 attempt) external {
        uint64 epoch = rewards.nextEpoch() - 1;
        uint256 supply = token.totalSupply();
        rewards.closePost(epoch, 1 + attempt % 3);
        otherBurned += supply - token.totalSupply();
    }

    function actClaim(uint8 back, uint8 which) external {
        uint64 epoch = rewards.lastFinalAt(rewards.nextEpoch() - 1);
        for (uint256 i = 0; i < back % 3 && epoch > 0; ++i) {
            epoch = rewards.lastFinalAt(epoch - 1);
        }
        if (epoch == 0 || built[epoch].length == 0) return;
        Leaf memory leaf = built[epoch][which % built[epoch].length];
        uint256 before = rewards.claimedOf(leaf.account);
        uint256 amount = rewards.claim(epoch, leaf, packed(epoch, leaf.index));
        must(rewards.claimedOf(leaf.account) == before + amount && amount != 0, "a claim did not grow");
        claimed += amount;
    }
}
