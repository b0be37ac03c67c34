#!/usr/bin/env bash
# Creates the GitHub release of the files in out/, with the notes from the changelog. Runs in the release workflow: docs/how-to/release.md.
set -euo pipefail
cd "${OUT:-out}"

version=$(node -p 'require("./release.json").version')
options=(--verify-tag --title "Holdfast $version" --notes-file release-notes.md)
if [[ $version == *-* ]]; then options+=(--prerelease); fi
cut -c 67- checksums.txt | xargs -d '\n' gh release create "v$version" "${options[@]}" checksums.txt checksums.txt.sigstore.json
