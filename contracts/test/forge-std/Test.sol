// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {TestBase} from "@forge-std/Base.sol";
import {StdAssertions} from "@forge-std/StdAssertions.sol";
import {StdChains} from "@forge-std/StdChains.sol";
import {StdCheats} from "@forge-std/StdCheats.sol";
import {stdError} from "@forge-std/StdError.sol";
import {StdInvariant} from "@forge-std/StdInvariant.sol";
import {stdJson} from "@forge-std/StdJson.sol";
import {stdMath} from "@forge-std/StdMath.sol";
import {StdStorage, stdStorage} from "@forge-std/StdStorage.sol";
import {StdStyle} from "@forge-std/StdStyle.sol";
import {StdUtils} from "@forge-std/StdUtils.sol";
import {Vm} from "@forge-std/Vm.sol";
import {console} from "@forge-std/console.sol";
import {console2} from "@forge-std/console2.sol";

/// @dev forge-std's Test without `safeconsole`. That one import draws 254 deprecation warnings from this compiler, and
/// solc stops reporting at 256: it would hide every warning of ours. The other files here pass forge-std's on as they
/// are, so that `forge-std/X.sol` is the path to write everywhere.
abstract contract Test is TestBase, StdAssertions, StdChains, StdCheats, StdInvariant, StdUtils {
    /// @dev Tells forge that this is a test.
    bool public IS_TEST = true;
}
