#!/usr/bin/env bash
# Adds the documents of a version to a checkout of branch gh-pages, and pushes it: site/publish.sh BUILT CHECKOUT VERSION
set -euo pipefail
built=$1 checkout=$2 version=$3

rm -rf "${checkout:?}/$version"
cp -r "$built" "$checkout/$version"
cd "$checkout"
touch .nojekyll # GitHub would drop files whose names begin with _
{
  echo '<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast</title><h1>Holdfast: documents by version</h1><ul>'
  for folder in $(printf '%s\n' v*/ | tr -d / | sort --version-sort --reverse); do
    echo "<li><a href=\"$folder/\">$folder</a></li>"
  done
  echo '</ul></html>'
} > index.html
git add --all
git -c user.name='github-actions[bot]' -c user.email='github-actions[bot]@users.noreply.github.com' commit --message "Publish the documents of $version"
git push
