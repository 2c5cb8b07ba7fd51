// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {stdJson} from "@forge-std/StdJson.sol";
