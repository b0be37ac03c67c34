import { VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../kube/resources.js';
import { AdmissionComponent } from '../../admission/component.js';
import type { ClientConfig } from '../../process/config/admission-config.js';
import type { IpamConfig } from '../../process/config/config.js';
import type { ProcessContext } from '../../process/context.js';
import { minCooldownMs } from '../../addressing/lease/lease-times.js';
import { createNadReviewer } from './nad-admission.js';
import { createPoolReviewer } from './pool-admission.js';
import type { ValidationView } from './review.js';
import { type AdmissionMetrics, createAdmissionMetrics } from '../../admission/metrics.js';
import type { Metrics } from '../../process/metrics.js';

const NAME = 'ipam-validation';
const VALIDATE_POOLS = '/validate-address-pools';
const VALIDATE_NADS = '/validate-network-attachment-definitions';
/** Shorter than the API server's timeout of 5 s in the shipped configuration, so that its users learn what is missing. */
const SYNC_TIMEOUT_MS = 4_000;

type ValidationConfig = Pick<
  IpamConfig,
  | 'namespace'
  | 'maxStalenessMs'
  | 'tlsMinVersion'
  | keyof ClientConfig
  | 'validationBindAddress'
  | 'validationCertDir'
  | 'validationConfiguration'
  | 'validationServiceName'
  | 'validationUrl'
>;

/** What reviews read: the lease book, the cache of pools, and the pool directory. */
export type ValidationDeps = Pick<ValidationView, 'leases' | 'pools' | 'networks' | 'rightsOf'>;

/** Serves the reviews of pools and NADs on every replica, leader or not. */
export function createValidationWebhook(
  shared: ProcessContext,
  config: ValidationConfig,
  deps: ValidationDeps,
): AdmissionComponent {
  const context = { ...shared, log: shared.log.child({ part: NAME }) };
  const { log, clock } = context;
  const metrics = createValidationMetrics(context.metrics);
  const view: ValidationView = { ...deps, minCooldownMs: minCooldownMs(config.maxStalenessMs) };
  const options = { view, waitForSync: () => waitForSync(context), log, metrics, clock };
  const [pools, nads] = [createPoolReviewer(options), createNadReviewer(options)];
  return new AdmissionComponent(context, {
    name: NAME,
    bindAddress: config.validationBindAddress,
    bindFlag: 'validation-bind-address',
    tlsMinVersion: config.tlsMinVersion,
    clients: config,
    certificate: {
      directory: config.validationCertDir,
      namespace: config.namespace,
      service: config.validationServiceName,
      url: config.validationUrl,
      configuration: { resource: VALIDATING_WEBHOOK_CONFIGURATIONS, name: config.validationConfiguration },
    },
    routes: {
      [VALIDATE_POOLS]: (body, arrivedAt) => pools.answer(body, arrivedAt),
      [VALIDATE_NADS]: (body, arrivedAt) => nads.answer(body, arrivedAt),
    },
    metrics,
  });
}

/** Before the caches have synced, reviews could be wrong. */
async function waitForSync({
  informers,
  clock,
}: Pick<ProcessContext, 'informers' | 'clock'>): Promise<string | undefined> {
  if (informers.ready() === undefined) return undefined;
  const limit = new AbortController();
  await Promise.race([informers.synced(), clock.sleep(SYNC_TIMEOUT_MS, limit.signal)]);
  limit.abort();
  return informers.ready();
}

export function createValidationMetrics(metrics: Metrics): AdmissionMetrics {
  return createAdmissionMetrics(metrics, { prefix: 'ipam', subjects: 'pools and networks' });
}
