//go:build !kubernetes1.35

package main

import (
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/quota/v1/install"
)

func quotaConfiguration(shared informers.SharedInformerFactory) (quota.Configuration, error) {
	return install.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(shared.ForResource), shared)
}
