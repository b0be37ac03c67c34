package main

import (
	"context"
	"os"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/podgc"
)

// startPodControllers starts what only pods on real nodes need: simulated nodes have neither DaemonSets nor endpoints.
func (m *manager) startPodControllers(ctx context.Context, rootCAFile string) error {
	rootCA, err := os.ReadFile(rootCAFile)
	if err != nil {
		return err
	}
	core, apps := m.informers.Core().V1(), m.informers.Apps().V1()
	publisher, err := rootcacertpublisher.NewPublisher(
		core.ConfigMaps(), core.Namespaces(), m.builder.ClientOrDie("root-ca-cert-publisher"), rootCA)
	if err != nil {
		return err
	}
	go publisher.Run(ctx, 1)
	daemons, err := daemon.NewDaemonSetsController(
		ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(),
		m.builder.ClientOrDie("daemon-set-controller"), flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	if err != nil {
		return err
	}
	go daemons.Run(ctx, 2)
	go endpointslice.NewController(
		ctx, core.Pods(), core.Services(), core.Nodes(), m.informers.Discovery().V1().EndpointSlices(), 100,
		m.builder.ClientOrDie("endpointslice-controller"), 0).Run(ctx, 5)
	go podgc.NewPodGC(ctx, m.builder.ClientOrDie("pod-garbage-collector"), core.Pods(), core.Nodes(), 12500).Run(ctx)
	return nil
}
