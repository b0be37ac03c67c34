#!/usr/bin/env bash
# The names and versions that the scripts of this folder share. Each can be set in the environment.
# shellcheck disable=SC2034 # the scripts that source this file use them

CLUSTER=${CLUSTER:-holdfast}
KUBERNETES_VERSION=${KUBERNETES_VERSION:-v1.34.0}
CNI_PLUGINS_VERSION=${CNI_PLUGINS_VERSION:-v1.9.1}
MULTUS_VERSION=${MULTUS_VERSION:-v4.2.2}
DYNAMIC_NETWORKS_VERSION=${DYNAMIC_NETWORKS_VERSION:-v0.3.7}
KUBEVIRT_VERSION=${KUBEVIRT_VERSION:-v1.8.0}

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# Usage: need TOOL…
need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || fail "needs $tool, which is not in PATH"
  done
  docker info >/dev/null 2>&1 || fail "cannot reach docker: start its daemon, and check that this user may use it"
}
