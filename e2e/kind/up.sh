#!/usr/bin/env bash
# Creates a kind cluster with the CNI plugins, Multus, KubeVirt (software emulation) and Holdfast, built from this tree.
set -euo pipefail

cluster=${CLUSTER:-holdfast}
cni_plugins=${CNI_PLUGINS_VERSION:-v1.9.1}
multus=${MULTUS_VERSION:-v4.2.2}
kubevirt=${KUBEVIRT_VERSION:-v1.8.0}
github=https://github.com

for tool in docker kind kubectl curl npm; do
  command -v "$tool" >/dev/null || { echo "up.sh needs $tool" >&2; exit 1; }
done
cd "$(dirname "$0")/../.."
image=holdfast:$(node -p 'require("./package.json").version')

kind get clusters | grep -qx "$cluster" || kind create cluster --name "$cluster" --wait 5m
kubectl config use-context "kind-$cluster"

echo "--- CNI plugins $cni_plugins on every node"
for node in $(kind get nodes --name "$cluster"); do
  arch=$(docker exec "$node" dpkg --print-architecture)
  curl -fsSL "$github/containernetworking/plugins/releases/download/$cni_plugins/cni-plugins-linux-$arch-$cni_plugins.tgz" |
    docker exec -i "$node" tar -xz --no-same-owner -C /opt/cni/bin
done

echo "--- Multus $multus"
kubectl apply -f "$github/k8snetworkplumbingwg/multus-cni/raw/$multus/deployments/multus-daemonset-thick.yml"
kubectl -n kube-system rollout status daemonset/kube-multus-ds --timeout=5m

echo "--- KubeVirt $kubevirt"
kubectl apply -f "$github/kubevirt/kubevirt/releases/download/$kubevirt/kubevirt-operator.yaml"
kubectl apply -f "$github/kubevirt/kubevirt/releases/download/$kubevirt/kubevirt-cr.yaml"
kubectl -n kubevirt patch kubevirt kubevirt --type=merge \
  -p '{"spec":{"configuration":{"developerConfiguration":{"useEmulation":true}}}}'
kubectl -n kubevirt wait kubevirt kubevirt --for=condition=Available --timeout=15m

echo "--- Holdfast ($image)"
npm run --silent build
docker build --quiet --tag "$image" .
kind load docker-image "$image" --name "$cluster"
kubectl get crd ipamclaims.k8s.cni.cncf.io >/dev/null 2>&1 || kubectl create -f manifests/crds/ipamclaims.yaml
kubectl apply --server-side -k manifests
for process in controller webhook ipam; do
  kubectl -n holdfast-system rollout status "deployment/holdfast-$process" --timeout=5m
done
kubectl -n holdfast-agents rollout status daemonset/holdfast-agent --timeout=5m

echo "The cluster is ready. To run the e2e tests on it: E2E_KUBECONFIG=${KUBECONFIG:-$HOME/.kube/config} npm run test:e2e"
