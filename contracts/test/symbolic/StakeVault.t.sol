// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {StakeVault} from "../../src/StakeVault.sol";
import {SynToken} from "../../src/SynToken.sol";
import {Genesis, Role} from "../../src/interfaces/IRun.sol";

/// @dev Clock and registry as the vault sees them; the test sets what they say.
contract Surroundings {
    uint64 public time;
    uint64 public currentEpoch;
    Role public role;

    function set(uint64 time_, uint64 epoch, Role role_) external {
        (time, currentEpoch, role) = (time_, epoch, role_);
    }

    function roleOf(address) external view returns (Role) {
        return role;
    }

    function vacate(address) external {}
}

/// @notice Proven by Halmos for every amount: the vault never has less or more than it owes, and slashing never fails.
contract StakeVaultSymbolic is Test {
    uint256 internal constant ALLOCATION = 2 ** 100;
    address internal constant HUNTER = address(0xbeef);

    SynToken internal token;
    StakeVault internal vault;
    Surroundings internal around;

    function setUp() public {
        around = new Surroundings();
        token = new SynToken(address(this), 2 ** 110, ALLOCATION);
        Genesis memory g;
        g.addresses.token = address(token);
        g.addresses.registry = address(around);
        g.addresses.epochs = address(around);
        g.addresses.faults = address(this);
        g.addresses.scores = address(this);
        g.params.unbondingS = 1000;
        g.params.fraudWindowEpochs = 3;
        g.params.roundsPerEpoch = 2;
        g.params.trainS = 100;
        g.params.minMinerStake = 10;
        vault = new StakeVault(g);
        token.approve(address(vault), type(uint256).max);
    }

    /// @dev Any deposit, exit and slash of one account, in this order, at any times.
    function check_slash_conservesAndNeverReverts(
        uint256 amount,
        uint256 leaving,
        uint256 wanted,
        uint256 bounty,
        uint64[2] calldata epochs,
        bool seated
    ) external {
        vm.assume(amount != 0 && amount < 2 ** 92);
        vm.assume(leaving <= amount);
        vm.assume(epochs[0] < 2 ** 24 - 1 && epochs[1] < 2 ** 24 - 1 && epochs[0] <= epochs[1]);
        around.set(1, epochs[0], seated ? Role.Miner : Role.None);
        vault.deposit(amount);
        if (leaving != 0) vault.requestUnbond(leaving);
        around.set(2, epochs[1], seated ? Role.Miner : Role.None);

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

    /// @dev Nothing comes out before its time, and what comes out is what was in the bucket.
    function check_withdraw_paysTheBucketAfterItsTime(uint256 amount, uint256 leaving, uint64 asked, uint64 later)
        external
    {
        vm.assume(amount != 0 && amount < 2 ** 92);
        vm.assume(leaving != 0 && leaving <= amount);
        vm.assume(asked < 2 ** 60 && later < 2 ** 62 && later >= asked);
        around.set(asked, 1, Role.None);
        vault.deposit(amount);
        vault.requestUnbond(leaving);
        around.set(later, 9, Role.None);
        (bool succeeded,) = address(vault).call(abi.encodeCall(vault.withdraw, ()));
        assert(succeeded == (later > asked + 1000));
        assert(token.balanceOf(address(vault)) == (succeeded ? amount - leaving : amount));
        assert(vault.activeOf(address(this)) == amount - leaving);
    }
}
