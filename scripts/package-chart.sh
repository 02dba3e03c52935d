#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# package-chart.sh IMAGE FOLDER: packages the chart for whoever has no copy of this repository. Its image is
# not one that the node has, as in values.yaml, but IMAGE, such as ghcr.io/example/lamplighter. HELM names the program.
set -euo pipefail
cd "$(dirname "$0")/.."

image=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
copy=$(mktemp -d)
trap 'rm -r "$copy"' EXIT

# Links lead out of the chart's folder, so their files are copied.
cp --recursive --dereference deploy/helm/lamplighter "$copy"
sed -i "s|^  repository: lamplighter\$|  repository: $image|" "$copy/lamplighter/values.yaml"
grep --quiet --line-regexp --fixed-strings "  repository: $image" "$copy/lamplighter/values.yaml" || {
    echo "package-chart: values.yaml has no line '  repository: lamplighter' to put the image into" >&2
    exit 1
}
"${HELM:-helm}" package --destination "$folder" "$copy/lamplighter"
