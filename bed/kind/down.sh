#!/usr/bin/env bash
# Deletes the cluster that up.sh has created.
set -euo pipefail
# shellcheck source=settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

need docker kind
kind delete cluster --name "$CLUSTER"
