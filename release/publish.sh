#!/usr/bin/env bash
# Pushes and signs what `make release` left in out/: the image, the chart and the checksums. Runs in the release workflow, which is logged in to
# the registry; see docs/how-to/release.md. It needs skopeo, helm, cosign and Node.js, and no npm package.
set -euo pipefail
cd "${OUT:-out}"

sha256sum --check --strict checksums.txt
version=$(node -p 'require("./release.json").version')
image=$(node -p 'require("./release.json").image')
name=${image%:*}

echo "--- $image"
skopeo copy --all --digestfile image.digest "oci-archive:holdfast-$version-image.tar" "docker://$image"
digest=$(<image.digest)
rm image.digest
cosign sign --yes "$name@$digest"

echo "--- the chart"
pushed=$(helm push "holdfast-$version.tgz" "oci://${name%/*}/charts" 2>&1) || { echo "$pushed" >&2; exit 1; }
echo "$pushed"
cosign sign --yes "${name%/*}/charts/holdfast@$(awk '/^Digest:/ {print $2}' <<<"$pushed")"

echo "--- checksums.txt"
cosign sign-blob --yes --bundle checksums.txt.sigstore.json checksums.txt

# for the steps that attest
printf 'image=%s\ndigest=%s\n' "$name" "$digest" >>"${GITHUB_OUTPUT:-/dev/stdout}"
