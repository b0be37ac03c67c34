#!/usr/bin/env bash
# Creates the GitHub release of the files in out/, with the notes from the changelog. Runs in the release workflow: docs/how-to/release.md.
set -euo pipefail
cd "${OUT:-out}"

version=$(node -p 'require("./release.json").version')
options=(--verify-tag --title "Holdfast $version" --notes-file release-notes.md)
if [[ $version == *-* ]]; then options+=(--prerelease); fi
# The list comes from a job that runs code of npm packages: no name in it may become an option.
if cut -c 67- checksums.txt | grep -qvE '^[a-z0-9][A-Za-z0-9._-]*$'; then
  echo 'checksums.txt names a file that is none of a release' >&2
  exit 1
fi
cut -c 67- checksums.txt | xargs -d '\n' gh release create "v$version" "${options[@]}" checksums.txt checksums.txt.sigstore.json
