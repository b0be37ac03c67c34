#!/usr/bin/env bash
# Creates a kind cluster with the CNI plugins, Multus, KubeVirt (software emulation) and Holdfast, built from this tree. May be run
# again: it keeps what is there and replaces Holdfast.
set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=settings.sh
source "$here/settings.sh"
cd "$here/../.."

context=kind-$CLUSTER
github=https://github.com
downloads=$(mktemp -d)
trap 'rm -rf "$downloads"' EXIT

step() {
  current=$1
  echo "--- $1"
}

explain() {
  echo "up.sh: failed in the step: ${current:-start}" >&2
  if kind get clusters 2>/dev/null | grep -qx "$CLUSTER"; then
    echo 'Pods that do not run:' >&2
    kube get pods -A --field-selector=status.phase!=Running,status.phase!=Succeeded >&2 || true
    kube get events -A --field-selector=type=Warning --sort-by=.lastTimestamp 2>/dev/null | tail -n 15 >&2 || true
  fi
  echo 'Correct the cause and run up.sh again, or begin anew with down.sh.' >&2
}
trap explain ERR

kube() {
  kubectl --context "$context" "$@"
}

# Usage: download URL FILE
download() {
  curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"
}

# Usage: roll_out NAMESPACE KIND/NAME…
roll_out() {
  local namespace=$1 workload
  shift
  for workload in "$@"; do kube -n "$namespace" rollout status "$workload" --timeout=5m; done
}

# Usage: establish NAME…
establish() {
  kube wait --for=condition=Established --timeout=1m "${@/#/crd/}"
}

# The gates of bed/manifests/kubevirt.yaml, and those of this version in bed/build/versions.ts.
feature_gates() {
  case $KUBEVIRT_VERSION in
    v1.7.*) echo '["Snapshot"]' ;;
    *) echo '["Snapshot","LiveUpdateNADRef"]' ;;
  esac
}

need docker kind kubectl curl npm go make

step "cluster $CLUSTER, Kubernetes $KUBERNETES_VERSION"
if ! kind get clusters 2>/dev/null | grep -qx "$CLUSTER"; then
  kind create cluster --name "$CLUSTER" --image "kindest/node:$KUBERNETES_VERSION" --config "$here/cluster.yaml" --wait 5m
fi
workers=$(kube get nodes --no-headers -l '!node-role.kubernetes.io/control-plane' | wc -l)
[ "$workers" -ge 2 ] || fail "the cluster $CLUSTER has $workers workers, and 2 are needed: delete it with down.sh"
kube wait nodes --all --for=condition=Ready --timeout=5m

step "image of Holdfast"
version=$(node -p 'require("./package.json").version')
image=holdfast:$version
# the image that the manifests name, for this machine, whatever the environment has for `make image`
make --no-print-directory image IMAGE=holdfast VERSION="$version" OUTPUT=type=docker PLATFORMS= BUILD_ARGS="${BUILD_ARGS:-}"
docker image inspect "$image" >/dev/null || fail "make image built no $image"
kind load docker-image "$image" --name "$CLUSTER"

step "CNI plugins $CNI_PLUGINS_VERSION"
for node in $(kind get nodes --name "$CLUSTER"); do
  arch=$(docker exec "$node" dpkg --print-architecture)
  archive=cni-plugins-linux-$arch-$CNI_PLUGINS_VERSION.tgz
  if [ ! -e "$downloads/$archive" ]; then
    release=$github/containernetworking/plugins/releases/download/$CNI_PLUGINS_VERSION
    download "$release/$archive" "$downloads/$archive"
    download "$release/$archive.sha256" "$downloads/$archive.sha256"
    (cd "$downloads" && sha256sum --check --quiet "$archive.sha256")
  fi
  docker exec -i "$node" tar -xz --no-same-owner -C /opt/cni/bin <"$downloads/$archive"
done

step "Multus $MULTUS_VERSION"
download "$github/k8snetworkplumbingwg/multus-cni/raw/$MULTUS_VERSION/deployments/multus-daemonset-thick.yml" "$downloads/multus.yaml"
kube apply --server-side --force-conflicts -f "$downloads/multus.yaml"
establish network-attachment-definitions.k8s.cni.cncf.io
roll_out kube-system daemonset/kube-multus-ds

# Without it, hot-plugged interfaces appear by migration only.
step "dynamic networks controller $DYNAMIC_NETWORKS_VERSION"
repository=$github/k8snetworkplumbingwg/multus-dynamic-networks-controller
download "$repository/raw/$DYNAMIC_NETWORKS_VERSION/manifests/dynamic-networks-controller.yaml" "$downloads/dynamic-networks.yaml"
sed -i "s|\(multus-dynamic-networks-controller\):latest-amd64|\1:$DYNAMIC_NETWORKS_VERSION|" "$downloads/dynamic-networks.yaml"
kube apply --server-side --force-conflicts -f "$downloads/dynamic-networks.yaml"
roll_out kube-system daemonset/dynamic-networks-controller-ds

step "KubeVirt $KUBEVIRT_VERSION"
download "$github/kubevirt/kubevirt/releases/download/$KUBEVIRT_VERSION/kubevirt-operator.yaml" "$downloads/kubevirt-operator.yaml"
kube apply --server-side --force-conflicts -f "$downloads/kubevirt-operator.yaml"
establish kubevirts.kubevirt.io
roll_out kubevirt deployment/virt-operator
# the object of the test bed, with what only kind needs
kube apply --server-side --force-conflicts -f bed/manifests/kubevirt.yaml
kube -n kubevirt patch kubevirt kubevirt --type=merge \
  -p "{\"spec\":{\"configuration\":{\"developerConfiguration\":{\"useEmulation\":true,\"featureGates\":$(feature_gates)}}}}"
kube -n kubevirt wait kubevirt kubevirt --for=condition=Available --timeout=15m
establish virtualmachines.kubevirt.io virtualmachineinstances.kubevirt.io

step "Holdfast ($image)"
kube get crd ipamclaims.k8s.cni.cncf.io >/dev/null 2>&1 || kube create -f manifests/crds/ipamclaims.yaml
kube apply --server-side -k manifests/crds
establish ipamclaims.k8s.cni.cncf.io {addresspools,addressleases,addressblocks}.ipam.holdfast.dev
deployments=(deployment/holdfast-controller deployment/holdfast-webhook deployment/holdfast-ipam deployment/holdfast-capacity deployment/holdfast-guest)
is_update=$(kube -n holdfast-agents get daemonset holdfast-agent --ignore-not-found --output name)
kube apply --server-side -k manifests/base
if [ -n "$is_update" ]; then
  # a new image has the same name
  kube -n holdfast-system rollout restart "${deployments[@]}"
  kube -n holdfast-agents rollout restart daemonset/holdfast-agent
fi
roll_out holdfast-system "${deployments[@]}"
roll_out holdfast-agents daemonset/holdfast-agent

echo "The cluster is ready. To run the e2e tests on it:"
echo "  kind get kubeconfig --name $CLUSTER > $CLUSTER.kubeconfig && E2E_KUBECONFIG=$CLUSTER.kubeconfig npm run test:e2e"
