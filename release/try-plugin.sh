#!/usr/bin/env bash
# Starts the kubectl plugin in out/ for this machine's platform, without Node.js: the PATH and the environment are empty.
set -euo pipefail
cd "${OUT:-out}"

case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) os=windows ;;
esac
case $(uname -m) in
  arm64 | aarch64) arch=arm64 ;;
  *) arch=amd64 ;;
esac
program=kubectl-holdfast
if [[ $os == windows ]]; then program=kubectl-holdfast.exe; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -xzf "kubectl-holdfast_${os}_$arch.tar.gz" -C "$folder"

# Windows finds its random numbers by SYSTEMROOT
start=(env -i ${SYSTEMROOT:+SYSTEMROOT="$SYSTEMROOT"} "$folder/$program")
wanted=$(sed -n 's/^ *"version": "\(.*\)",$/\1/p' release.json)
found=$("${start[@]}" --version)
if [[ $found != "$wanted" ]]; then
  echo "the plugin for $os/$arch says \"$found\", not $wanted" >&2
  exit 1
fi
"${start[@]}" help >"$folder/help"
grep -q 'kubectl holdfast' "$folder/help"
echo "the plugin for $os/$arch starts: $found"
