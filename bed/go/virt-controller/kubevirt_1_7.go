//go:build kubevirt1.7

package main

import (
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
)

var newerCRDs []func() (*extv1.CustomResourceDefinition, error)

func newerWebhooks() []any { return nil }

func controllerRBAC() []any { return toAny(rbac.GetAllController(namespace)) }
