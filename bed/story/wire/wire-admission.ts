import type { KubeObject } from '../../../api/meta.js';
import { CLAIM_REFERENCE_KEY, NETWORKS_ANNOTATION } from '../../../api/names.js';
import type { Pod } from '../../../api/pod.js';
import type { Resource } from '../../../kube/resource.js';
import { MUTATING_WEBHOOK_CONFIGURATIONS, PODS } from '../../../kube/resources.js';
import { withoutReferences } from '../claims.js';
import { rejectionMessage } from '../rejection.js';
import type { Story } from '../story.js';
import { until } from '../../processes/wait.js';

interface SelectingConfiguration extends KubeObject {
  webhooks: { namespaceSelector: { matchExpressions: { key: string; operator: string; values: string[] }[] } }[];
}

const CONFIGURATIONS = MUTATING_WEBHOOK_CONFIGURATIONS as unknown as Resource<SelectingConfiguration>;
const CONFIGURATION_NAME = 'holdfast-webhook';

/** Excludes the namespace from the webhook while `act` runs, to test the agent with pods that passed admission by other means. */
export async function withoutWebhook<T>(story: Story, act: () => Promise<T>): Promise<T> {
  await setSelected(story, false);
  try {
    return await act();
  } finally {
    await setSelected(story, true);
  }
}

/** Removes the references from the launcher's networks, as virt-controller does, and waits until none is left. */
export async function stripReferences(story: Story, launcher: Pod): Promise<void> {
  const { name } = launcher.metadata;
  await until(`the references of ${name} to be stripped`, async () => {
    const pod = await story.client.get(PODS, story.ref(name));
    const networks = withoutReferences(pod.metadata.annotations?.[NETWORKS_ANNOTATION] ?? '[]');
    const body = { metadata: { annotations: { [NETWORKS_ANNOTATION]: networks } } };
    const patched = await story.client.patch(PODS, story.ref(name), { type: 'merge', body });
    // the webhook may not know yet that it is excluded, and may add them again
    return patched.metadata.annotations?.[NETWORKS_ANNOTATION]?.includes(CLAIM_REFERENCE_KEY) === false;
  });
}

/** Waits until the API server accepts a pod that the webhook rejects. */
export async function untilAdmitted(create: () => Promise<Pod>): Promise<Pod> {
  return until('a pod to get past the webhook', async () => create());
}

/** The message with which the API server rejects a pod. */
export function refusedPod(create: () => Promise<Pod>): Promise<string> {
  return rejectionMessage(create());
}

async function setSelected(story: Story, isSelected: boolean): Promise<void> {
  const { webhooks } = await story.client.get(CONFIGURATIONS, { name: CONFIGURATION_NAME });
  const changed = webhooks.map((webhook) => {
    const matchExpressions = webhook.namespaceSelector.matchExpressions.map((expression) => {
      const others = expression.values.filter((value) => value !== story.namespace);
      return { ...expression, values: isSelected ? others : [...others, story.namespace] };
    });
    return { ...webhook, namespaceSelector: { matchExpressions } };
  });
  await story.client.patch(
    CONFIGURATIONS,
    { name: CONFIGURATION_NAME },
    { type: 'merge', body: { webhooks: changed } },
  );
}
