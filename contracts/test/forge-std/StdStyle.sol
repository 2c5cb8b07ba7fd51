// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StdStyle} from "@forge-std/StdStyle.sol";
