// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {console2} from "@forge-std/console2.sol";
