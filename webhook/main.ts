import type { AddressPool } from '../api/address-pool.js';
import { ADDRESS_POOLS, MUTATING_WEBHOOK_CONFIGURATIONS } from '../kube/resources.js';
import { type AdmissionPart, createAdmissionPart } from '../admission/part.js';
import type { WebhookConfig } from '../process/config.js';
import type { ProcessContext } from '../process/context.js';
import { openGate } from '../cluster/gates.js';
import { followKubeVirt } from '../cluster/kubevirt-controller.js';
import type { Watched } from '../kube/informers.js';
import { PoolDirectory } from '../ipam/directory/directory.js';
import { shrinkPool } from '../cluster/shrink.js';
import { ALL_NAMESPACES, CLAIMS, NADS, VMIS, VMS } from '../cluster/watched.js';
import { Admission } from './admission.js';
import { CapacityAdmission, publishedPools } from './capacity-admission.js';
import type { CapacitySight } from './capacity-requests.js';
import { Lookup } from './lookup.js';
import { type WebhookMetrics, createWebhookMetrics } from './metrics.js';

const NAME = 'webhook';
const MUTATE_LAUNCHER_PODS = '/mutate-launcher-pods';
const CAPACITY = '/capacity';

/** Optional: launchers must not wait for a kind that they need nothing of. */
const SEEN_POOLS: Watched<AddressPool> = { resource: ADDRESS_POOLS, shrink: shrinkPool, optional: true };

/** Launcher pods → references to their claims; pods → requests for addresses. Any number of replicas serve at once. */
export function createWebhook(shared: ProcessContext, config: WebhookConfig): AdmissionPart {
  const context = { ...shared, log: shared.log.child({ part: NAME }) };
  const { informers, log, clock } = context;
  const metrics = createWebhookMetrics(context.metrics);
  const lookup = createLookup(context, config, metrics);
  const kubevirt = followKubeVirt(informers, config.namespace);
  const admission = new Admission({ lookup, kubevirt, log, metrics, clock });
  const capacity = createCapacityAdmission(context, config, { lookup, metrics });
  return createAdmissionPart(context, {
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
      [MUTATE_LAUNCHER_PODS]: async (body) => {
        // Before the caches are filled, nothing that they say would be true.
        if (informers.missing.length > 0) await informers.synced();
        return admission.answer(body);
      },
      [CAPACITY]: async (body) => {
        if (informers.missing.length > 0) await informers.synced();
        return capacity.answer(body);
      },
    },
    metrics,
    notice: () => kubevirt.controller().problem,
  });
}

function createCapacityAdmission(
  { informers, log, clock }: ProcessContext,
  { featureGates }: WebhookConfig,
  { lookup, metrics }: { lookup: Lookup; metrics: WebhookMetrics },
): CapacityAdmission {
  return new CapacityAdmission({
    lookup,
    ...(featureGates.publishCapacity && { publishedPool: followPools(informers) }),
    log,
    metrics: { reviewed: metrics.capacityReviewed },
    clock,
  });
}

/** For requests alone: launchers are pointed at their claims without a look at any pool. */
function followPools(informers: ProcessContext['informers']): CapacitySight['publishedPool'] {
  const networks = informers.get(NADS);
  const pools = informers.get(SEEN_POOLS);
  const directory = new PoolDirectory({
    pools: pools.cache,
    networks: networks.cache,
    areNetworksServed: () => networks.isServed,
  });
  directory.follow({ pools, networks });
  return publishedPools(directory, networks.cache);
}

function createLookup(
  { informers, client, clock }: ProcessContext,
  config: WebhookConfig,
  metrics: WebhookMetrics,
): Lookup {
  return new Lookup({
    listers: {
      vmis: informers.get(VMIS).cache,
      vms: informers.get(VMS).cache,
      claims: informers.get(CLAIMS).cache,
      networks: informers.get(NADS).cache,
      namespaces: informers.get(ALL_NAMESPACES).cache,
    },
    client,
    gate: openGate(config, informers),
    clock,
    onLiveRead: metrics.readLive,
  });
}
