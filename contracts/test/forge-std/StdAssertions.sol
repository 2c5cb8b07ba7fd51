// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StdAssertions} from "@forge-std/StdAssertions.sol";
