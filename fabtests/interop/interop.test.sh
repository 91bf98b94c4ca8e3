#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The peer of peer.py against rvcm as built here.
command -v python3 >/dev/null || { echo "1..0 # SKIP python3 is not installed"; exit 0; }
FI_PROVIDER_PATH=$(cd "${top_builddir:-.}/.libs" && pwd) FI_PROVIDER=rvcm
export FI_PROVIDER_PATH FI_PROVIDER
exec timeout 300 python3 "$(dirname "$0")/peer.py"
