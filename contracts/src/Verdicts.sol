// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Genesis} from "./interfaces/IRun.sol";
import {RunLib} from "./libraries/RunLib.sol";

/// @title Verdicts
contract Verdicts {
    bytes32 public immutable run;

    constructor(Genesis memory g) {
        run = RunLib.id(g.addresses.registry, g.nonce);
    }
}
