// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {console} from "@forge-std/console.sol";
