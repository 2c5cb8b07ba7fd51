// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {StakeVault} from "../../src/StakeVault.sol";
import {SynToken} from "../../src/SynToken.sol";
import {Genesis} from "../../src/interfaces/IRun.sol";

/// @dev Clock, registry and settlement as the vault sees them; the test sets what they say.
contract Surroundings {
    uint64 public time;
    uint64 public nextEpoch = 1;

    function set(uint64 time_, uint64 next) external {
        (time, nextEpoch) = (time_, next);
    }

    function runningTime() external view returns (uint64) {
        return time;
    }

    function vacate(address, uint256) external {}
}

/// @notice Proven by Halmos for every amount: the vault never has less or more than it owes, and slashing never fails.
contract StakeVaultSymbolic is Test {
    uint256 internal constant ALLOCATION = 2 ** 95;
    uint256 internal constant UNBONDING_S = 8192;
    address internal constant HUNTER = address(0xbeef);

    SynToken internal token;
    StakeVault internal vault;
    Surroundings internal around;

    function setUp() public {
        around = new Surroundings();
        token = new SynToken(address(this), 2 ** 95, ALLOCATION);
        Genesis memory g;
        g.addresses.token = address(token);
        g.addresses.registry = address(around);
        g.addresses.epochs = address(around);
        g.addresses.rewards = address(around);
        g.addresses.verdicts = address(this);
        g.addresses.scores = address(this);
        g.addresses.disputes = address(this);
        g.params.unbondingS = uint32(UNBONDING_S);
        g.params.fraudWindowEpochs = 3;
        g.params.roundsPerEpoch = 1;
        g.params.trainS = 1024;
        g.params.minMinerStake = 10;
        vault = new StakeVault(g);
        token.approve(address(vault), type(uint256).max);
    }

    /// @dev Any deposit, exit and slash of one account, in this order, within an epoch or in three.
    function check_slash_conservesAndNeverReverts(
        uint256 amount,
        uint256 leaving,
        uint256 wanted,
        uint256 bounty,
        bool later
    ) external {
        vm.assume(amount != 0 && amount <= 2 ** 91);
        vm.assume(leaving <= amount);
        vault.deposit(amount);
        if (later) around.set(1024, 1);
        if (leaving != 0) vault.requestUnbond(leaving);
        if (later) around.set(4096, 1);

        uint256 supply = token.totalSupply();
        (bool succeeded, bytes memory answer) =
            address(vault).call(abi.encodeCall(vault.slash, (address(this), wanted, HUNTER, bounty)));
        assert(succeeded);
        uint256 taken = abi.decode(answer, (uint256));
        assert(taken == (wanted < amount ? wanted : amount));
        uint256 paid = token.balanceOf(HUNTER);
        assert(paid == (bounty < taken ? bounty : taken));
        assert(supply - token.totalSupply() == taken - paid);
        (uint256 unbonding,) = vault.unbondingOf(address(this));
        assert(vault.activeOf(address(this)) + unbonding == amount - taken);
        assert(token.balanceOf(address(vault)) == amount - taken);
        assert(unbonding <= leaving);
    }

    /// @dev Nothing comes out before its time, its settlement or the end of the games; what comes out is the bucket.
    function check_withdraw_paysTheBucketWhenItMay(
        uint256 amount,
        uint256 leaving,
        uint64 later,
        uint64 next,
        bool locked
    ) external {
        vm.assume(amount != 0 && amount <= 2 ** 91);
        vm.assume(leaving != 0 && leaving <= amount);
        around.set(1024, 1);
        vault.deposit(amount);
        vault.requestUnbond(leaving);
        if (locked) vault.lock(address(this));
        around.set(later, next);
        (bool succeeded,) = address(vault).call(abi.encodeCall(vault.withdraw, ()));
        // Requested in epoch 2.
        assert(succeeded == (later > 1024 + UNBONDING_S && next > 2 && !locked));
        assert(token.balanceOf(address(vault)) == (succeeded ? amount - leaving : amount));
        assert(vault.activeOf(address(this)) == amount - leaving);
    }
}
