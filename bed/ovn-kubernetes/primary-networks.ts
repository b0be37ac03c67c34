import { join } from 'node:path';
import { readManifests } from '../control-plane/objects.js';
import type { BedWithHoldfast } from '../environment.js';
import { MANIFESTS } from '../holdfast/manifests.js';
import { MUTATING_WEBHOOK_CONFIGURATIONS, NAMESPACES, type WebhookConfigurationObject } from '../../kube/resources.js';
import { putNetwork } from '../story/networks.js';
import { removeNamespaces } from '../story/cleanup.js';

/** The namespace of OVN-Kubernetes' configuration. */
export const OVN_NAMESPACE = 'ovn-kubernetes';
const GATE = '--feature-gates=PrimaryUserDefinedNetwork=true';
const ENTRY = 'primary-networks.ipam.holdfast.dev';
const REF = { name: 'holdfast-webhook' };

/**
 * Turns the feature gate on, as the component does, and creates the NAD that requests name.
 * @returns a function that undoes it
 */
export async function servePrimaryNetworks(bed: BedWithHoldfast): Promise<() => Promise<void>> {
  const undo = async () => {
    await changeWebhooks(bed, (webhooks) => webhooks.filter(({ name }) => name !== ENTRY));
    await restart(bed, []);
    await removeNamespaces(bed.client, [OVN_NAMESPACE]);
  };
  try {
    await turnOn(bed);
  } catch (error) {
    await undo();
    throw error;
  }
  return undo;
}

async function turnOn(bed: BedWithHoldfast): Promise<void> {
  await bed.client.create(NAMESPACES, { metadata: { name: OVN_NAMESPACE } });
  // without IPAM: host-local rejects requests for two addresses, which Multus passes on
  const config = { cniVersion: '1.0.0', name: 'ovn-kubernetes', type: 'bridge', bridge: 'ovn0' };
  await putNetwork(bed.client, 'default', { namespace: OVN_NAMESPACE, config });
  const [component] = await readManifests(join(MANIFESTS, 'components', 'primary-networks', 'mutating-webhook.yaml'));
  const [entry] = (component as unknown as WebhookConfigurationObject).webhooks ?? [];
  await changeWebhooks(bed, ([first, ...others]) => {
    const clientConfig = { ...entry?.clientConfig, caBundle: first?.clientConfig.caBundle };
    return [first!, ...others, { ...entry!, clientConfig } as typeof entry & object];
  });
  await restart(bed, [GATE]);
}

type Webhooks = NonNullable<WebhookConfigurationObject['webhooks']>;

async function changeWebhooks({ client }: BedWithHoldfast, change: (webhooks: Webhooks) => Webhooks): Promise<void> {
  const configuration = await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, REF);
  const webhooks = change(configuration.webhooks ?? []);
  await client.replace(MUTATING_WEBHOOK_CONFIGURATIONS, { ...configuration, webhooks });
}

async function restart({ controller, webhook }: BedWithHoldfast, args: readonly string[]): Promise<void> {
  await Promise.all([controller.stop(), webhook.stop()]);
  await Promise.all([controller.start({ args }), webhook.start({ args })]);
}
