package main

import (
	"context"
	"flag"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
	"k8s.io/kubernetes/pkg/quota/v1/install"
)

const (
	resyncPeriod    = 12 * time.Hour
	discoveryPeriod = 30 * time.Second
)

// manager starts controllers as kube-controller-manager does: with its defaults, each with its own service account.
type manager struct {
	builder         clientbuilder.ControllerClientBuilder
	mapper          *restmapper.DeferredDiscoveryRESTMapper
	metadata        metadata.Interface
	informers       informers.SharedInformerFactory
	objects         informerfactory.InformerFactory
	informerStarted chan struct{}
}

func runControllers(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("kube-controller-manager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of a cluster admin")
	rootCAFile := flags.String("root-ca-file", "", "CA of the API server for pods; if set, the controllers for pods on real nodes run too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	restclient.SetDefaultWarningHandler(restclient.NoWarnings{})
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.QPS, config.Burst = 1000, 1000 // the default of 20 would make the start seconds longer
	m := newManager(config)
	go wait.Until(m.mapper.Reset, discoveryPeriod, ctx.Done())
	for _, start := range []func(context.Context) error{
		m.startServiceAccounts, m.startNamespaces, m.startGarbageCollector, m.startClusterRoleAggregation,
		m.startNodeLifecycle, m.startTaintEviction, m.startDisruption, m.startDeployments, m.startStatefulSets,
		m.startResourceQuotas,
	} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	if *rootCAFile != "" {
		if err := m.startPodControllers(ctx, *rootCAFile); err != nil {
			return err
		}
	}
	m.objects.Start(ctx.Done())
	close(m.informerStarted)
	<-ctx.Done()
	return nil
}

func newManager(config *restclient.Config) *manager {
	root := clientbuilder.SimpleControllerClientBuilder{ClientConfig: config}
	client := root.ClientOrDie("shared-informers")
	metadataClient := metadata.NewForConfigOrDie(root.ConfigOrDie("metadata-informers"))
	shared := informers.NewSharedInformerFactory(client, resyncPeriod)
	return &manager{
		builder: clientbuilder.NewDynamicClientBuilder(
			restclient.AnonymousClientConfig(config), client.CoreV1(), metav1.NamespaceSystem),
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(
			memory.NewMemCacheClient(root.DiscoveryClientOrDie("controller-discovery"))),
		metadata:  metadataClient,
		informers: shared,
		objects: informerfactory.NewInformerFactory(
			shared, metadatainformer.NewSharedInformerFactory(metadataClient, resyncPeriod)),
		informerStarted: make(chan struct{}),
	}
}

func (m *manager) startServiceAccounts(ctx context.Context) error {
	controller, err := serviceaccount.NewServiceAccountsController(
		klog.FromContext(ctx), m.informers.Core().V1().ServiceAccounts(), m.informers.Core().V1().Namespaces(),
		m.builder.ClientOrDie("service-account-controller"), serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	go controller.Run(ctx, 1)
	return nil
}

func (m *manager) startNamespaces(ctx context.Context) error {
	config := m.builder.ConfigOrDie("namespace-controller")
	config.QPS, config.Burst = 20*config.QPS, 100*config.Burst
	client := clientset.NewForConfigOrDie(config)
	controller := namespace.NewNamespaceController(
		ctx, client, metadata.NewForConfigOrDie(config), client.Discovery().ServerPreferredNamespacedResources,
		m.informers.Core().V1().Namespaces(), 5*time.Minute, v1.FinalizerKubernetes)
	go controller.Run(ctx, 10)
	return nil
}

func (m *manager) startGarbageCollector(ctx context.Context) error {
	const name = "generic-garbage-collector"
	config := m.builder.ConfigOrDie(name)
	config.QPS *= 2
	graph := garbagecollector.NewDependencyGraphBuilder(
		ctx, m.metadata, m.mapper, garbagecollector.DefaultIgnoredResources(), m.objects, m.informerStarted)
	collector, err := garbagecollector.NewComposedGarbageCollector(
		ctx, m.builder.ClientOrDie(name), metadata.NewForConfigOrDie(config), m.mapper, graph)
	if err != nil {
		return err
	}
	go collector.Run(ctx, 20, discoveryPeriod)
	go collector.Sync(ctx, m.builder.DiscoveryClientOrDie(name), discoveryPeriod)
	return nil
}

func (m *manager) startClusterRoleAggregation(ctx context.Context) error {
	client := m.builder.ClientOrDie("clusterrole-aggregation-controller")
	go clusterroleaggregation.NewClusterRoleAggregation(m.informers.Rbac().V1().ClusterRoles(), client.RbacV1()).Run(ctx, 5)
	return nil
}

func (m *manager) startNodeLifecycle(ctx context.Context) error {
	core := m.informers.Core().V1()
	controller, err := nodelifecycle.NewNodeLifecycleController(
		ctx, m.informers.Coordination().V1().Leases(), core.Pods(), core.Nodes(), m.informers.Apps().V1().DaemonSets(),
		m.builder.ClientOrDie("node-controller"), 5*time.Second, time.Minute, 50*time.Second, 0.1, 0.01, 50, 0.55)
	if err != nil {
		return err
	}
	go controller.Run(ctx)
	return nil
}

func (m *manager) startTaintEviction(ctx context.Context) error {
	core := m.informers.Core().V1()
	controller, err := tainteviction.New(
		ctx, m.builder.ClientOrDie("node-controller"), core.Pods(), core.Nodes(), "taint-eviction-controller")
	if err != nil {
		return err
	}
	go controller.Run(ctx)
	return nil
}

func (m *manager) startDisruption(ctx context.Context) error {
	client := m.builder.ClientOrDie("disruption-controller")
	config := m.builder.ConfigOrDie("disruption-controller")
	scaleClient, err := scale.NewForConfig(
		config, m.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return err
	}
	core, apps := m.informers.Core().V1(), m.informers.Apps().V1()
	go runDisruption(ctx, disruption.NewDisruptionController(
		ctx, core.Pods(), m.informers.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), client, m.mapper, scaleClient, client.Discovery()))
	return nil
}

func (m *manager) startDeployments(ctx context.Context) error {
	apps, pods := m.informers.Apps().V1(), m.informers.Core().V1().Pods()
	controller, err := deployment.NewDeploymentController(
		ctx, apps.Deployments(), apps.ReplicaSets(), pods, m.builder.ClientOrDie("deployment-controller"))
	if err != nil {
		return err
	}
	go controller.Run(ctx, 5)
	go replicaset.NewReplicaSetController(
		ctx, apps.ReplicaSets(), pods, m.builder.ClientOrDie("replicaset-controller"), replicaset.BurstReplicas).Run(ctx, 5)
	return nil
}

func (m *manager) startStatefulSets(ctx context.Context) error {
	core, apps := m.informers.Core().V1(), m.informers.Apps().V1()
	go statefulset.NewStatefulSetController(
		ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(),
		m.builder.ClientOrDie("statefulset-controller")).Run(ctx, 5)
	return nil
}

// startResourceQuotas counts what quotas limit. It finds kinds that are created later within half a minute.
func (m *manager) startResourceQuotas(ctx context.Context) error {
	client := m.builder.ClientOrDie("resourcequota-controller")
	kinds := m.builder.DiscoveryClientOrDie("resourcequota-controller").ServerPreferredNamespacedResources
	configuration, err := quotaConfiguration(m.informers)
	if err != nil {
		return err
	}
	quotas, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     m.informers.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(5 * time.Minute),
		InformerFactory:           m.objects,
		ReplenishmentResyncPeriod: controller.StaticResyncPeriodFunc(resyncPeriod),
		DiscoveryFunc:             kinds,
		IgnoredResourcesFunc:      configuration.IgnoredResources,
		InformersStarted:          m.informerStarted,
		Registry:                  generic.NewRegistry(configuration.Evaluators()),
		UpdateFilter:              install.DefaultUpdateFilter(),
	})
	if err != nil {
		return err
	}
	go quotas.Run(ctx, 5)
	go quotas.Sync(ctx, kinds, discoveryPeriod)
	return nil
}
