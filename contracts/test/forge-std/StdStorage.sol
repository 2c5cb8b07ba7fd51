// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StdStorage, stdStorage} from "@forge-std/StdStorage.sol";
