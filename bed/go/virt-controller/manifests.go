package main

import (
	"encoding/json"
	"io"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
)

const namespace = "kubevirt"

// manifests are the objects that virt-operator would create, in the order in which the bed creates them.
type manifests struct {
	CRDs        []any `json:"crds"`
	RBAC        []any `json:"rbac"`
	APIServices []any `json:"apiServices"`
	Webhooks    []any `json:"webhooks"`
}

// The kinds that virt-api and virt-controller wait for before they start, and the other kinds that create or define VMs and need
// no storage. The controllers of kinds that are missing here stay idle.
var crds = []func() (*extv1.CustomResourceDefinition, error){
	components.NewKubeVirtCrd,
	components.NewVirtualMachineCrd,
	components.NewVirtualMachineInstanceCrd,
	components.NewVirtualMachineInstanceMigrationCrd,
	components.NewMigrationPolicyCrd,
	components.NewPresetCrd,
	components.NewVirtualMachineRestoreCrd,
	components.NewVirtualMachineSnapshotCrd,
	components.NewVirtualMachineSnapshotContentCrd,
	components.NewVirtualMachineCloneCrd,
	components.NewVirtualMachinePoolCrd,
	components.NewVirtualMachineInstancetypeCrd,
	components.NewVirtualMachineClusterInstancetypeCrd,
	components.NewVirtualMachinePreferenceCrd,
	components.NewVirtualMachineClusterPreferenceCrd,
}

// writeManifests prints manifests as one JSON object.
func writeManifests(w io.Writer) error {
	var m manifests
	for _, newCRD := range append(crds, newerCRDs...) {
		crd, err := newCRD()
		if err != nil {
			return err
		}
		crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition" // the generators leave these empty
		m.CRDs = append(m.CRDs, crd)
	}
	for _, objects := range [][]any{
		toAny(rbac.GetAllCluster()), toAny(rbac.GetAllApiServer(namespace)),
		controllerRBAC(), toAny(rbac.GetAllHandler(namespace)),
	} {
		m.RBAC = append(m.RBAC, objects...)
	}
	m.APIServices = toAny(components.NewVirtAPIAPIServices(namespace))
	m.Webhooks = append([]any{
		components.NewVirtAPIMutatingWebhookConfiguration(namespace),
		components.NewVirtAPIValidatingWebhookConfiguration(namespace),
	}, newerWebhooks()...)
	return json.NewEncoder(w).Encode(m)
}

func toAny[T any](objects []T) []any {
	out := make([]any, len(objects))
	for i, o := range objects {
		out[i] = o
	}
	return out
}
