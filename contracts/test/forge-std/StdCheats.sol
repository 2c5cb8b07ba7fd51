// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StdCheats, StdCheatsSafe} from "@forge-std/StdCheats.sol";
