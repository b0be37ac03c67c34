//go:build !kubevirt1.7

package main

import (
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
)

// What KubeVirt has since 1.8.
var newerCRDs = []func() (*extv1.CustomResourceDefinition, error){components.NewVirtualMachineBackupCrd}

func newerWebhooks() []any {
	return []any{components.NewVirtLauncherPodMutatingWebhookConfiguration(namespace)}
}

func controllerRBAC() []any { return toAny(rbac.GetAllController(namespace, true)) }
