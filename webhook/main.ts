import type { AddressPool } from '../api/address-pool.js';
import { ADDRESS_POOLS, MUTATING_WEBHOOK_CONFIGURATIONS } from '../kube/resources.js';
import { AdmissionComponent } from '../admission/component.js';
import type { WebhookConfig } from '../process/config/config.js';
import type { ProcessContext } from '../process/context.js';
import { createPersistentIPsGate } from '../cluster/persistent-ips-gate.js';
import { findPrimaryNetwork } from '../cluster/primary-network.js';
import { watchKubeVirt } from '../cluster/kubevirt-controller.js';
import type { WatchSpec } from '../kube/informers/informers.js';
import { createPoolDirectory } from '../addressing/directory/create-directory.js';
import { transformPool } from '../cluster/transforms.js';
import { NAMESPACE_WATCH, CLAIM_WATCH, NAD_WATCH, VMI_WATCH, VM_WATCH } from '../cluster/watch-specs.js';
import { LauncherAdmission } from './launcher-admission.js';
import { CapacityAdmission, findPublishedPool } from './capacity-admission.js';
import type { CapacityContext } from './capacity-requests.js';
import { type PodDecision, type PodReview, UNCHANGED } from './pod-decision.js';
import { PodReviewer } from './pod-reviewer.js';
import { reviewPrimaryNetwork } from './primary-network.js';
import { type WebhookMetrics, createWebhookMetrics } from './metrics.js';

const NAME = 'webhook';
const LAUNCHER_PATH = '/mutate-launcher-pods';
const PRIMARY_PATH = '/mutate-primary-networks';
const CAPACITY_PATH = '/capacity';

/** Optional: reviews of launchers do not need pools and must not wait for them. */
const OPTIONAL_POOLS: WatchSpec<AddressPool> = { resource: ADDRESS_POOLS, transform: transformPool, optional: true };

/** Sets claim references on launcher pods and requests for addresses on pods. All replicas serve at once. */
export function createWebhook(shared: ProcessContext, config: WebhookConfig): AdmissionComponent {
  const context = { ...shared, log: shared.log.child({ part: NAME }) };
  const { informers, log, clock } = context;
  const metrics = createWebhookMetrics(context.metrics);
  const podReviewer = createPodReviewer(context, config, metrics);
  const kubevirt = watchKubeVirt(informers, config.namespace);
  const admission = new LauncherAdmission({ podReviewer, kubevirt, log, metrics, clock });
  const primary = new LauncherAdmission({
    podReviewer: { review: reviewOfPrimaryNetworks(context, config, podReviewer) },
    ...{ kubevirt, log, metrics, clock },
  });
  // answers from incomplete caches would be wrong
  const onceSynced =
    (reviewer: Pick<LauncherAdmission, 'answer'>) =>
    async (body: unknown, arrivedAt: number): Promise<string> => {
      if (informers.missing.length > 0) await informers.synced();
      return reviewer.answer(body, arrivedAt);
    };
  const capacity = new CapacityAdmission({
    podReviewer,
    ...(config.featureGates.publishCapacity && { publishedPool: followPools(context) }),
    ...{ log, clock, metrics: { reviewed: metrics.capacityReviewed } },
  });
  return new AdmissionComponent(context, {
    name: NAME,
    bindAddress: config.webhookBindAddress,
    bindFlag: 'webhook-bind-address',
    tlsMinVersion: config.tlsMinVersion,
    clients: config,
    certificate: {
      directory: config.webhookCertDir,
      namespace: config.namespace,
      service: config.webhookServiceName,
      url: config.webhookUrl,
      configuration: { resource: MUTATING_WEBHOOK_CONFIGURATIONS, name: config.webhookConfiguration },
      moreConfigurations: [{ resource: MUTATING_WEBHOOK_CONFIGURATIONS, name: config.webhookCapacityConfiguration }],
    },
    routes: {
      [LAUNCHER_PATH]: onceSynced(admission),
      [PRIMARY_PATH]: onceSynced(primary),
      [CAPACITY_PATH]: onceSynced(capacity),
    },
    metrics,
    notice: () => kubevirt.controller().problem,
  });
}

/** Changes nothing while the feature gate is off. */
function reviewOfPrimaryNetworks(
  { informers }: ProcessContext,
  { featureGates, defaultNetworkNadNamespace: nadNamespace }: WebhookConfig,
  podReviewer: PodReviewer,
): (review: PodReview) => Promise<PodDecision> {
  if (!featureGates.primaryUserDefinedNetwork) return () => Promise.resolve({ ...UNCHANGED, rechecks: [] });
  const networks = informers.get(NAD_WATCH).cache;
  return (review) =>
    podReviewer.decideWithRechecks(review.namespace, (view) =>
      reviewPrimaryNetwork(review, view, { network: findPrimaryNetwork(review.namespace, networks), nadNamespace }),
    );
}

/** Only requests for addresses need pools; claim references do not. */
function followPools({ informers, clock }: ProcessContext): CapacityContext['publishedPool'] {
  const networks = informers.get(NAD_WATCH);
  const directory = createPoolDirectory({ pools: informers.get(OPTIONAL_POOLS), networks }, clock);
  return findPublishedPool(directory, networks.cache);
}

function createPodReviewer(
  { informers, client, clock }: ProcessContext,
  config: WebhookConfig,
  metrics: WebhookMetrics,
): PodReviewer {
  const gate = createPersistentIPsGate(config, informers);
  return new PodReviewer({
    listers: {
      vmis: informers.get(VMI_WATCH).cache,
      vms: informers.get(VM_WATCH).cache,
      claims: informers.get(CLAIM_WATCH).cache,
      networks: informers.get(NAD_WATCH).cache,
      // they say which pods may refer to claims that do not exist yet
      namespaces: gate.informer(NAMESPACE_WATCH).cache,
    },
    client,
    gate,
    clock,
    onLiveRead: metrics.readLive,
  });
}
