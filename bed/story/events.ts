import type { KubeObject } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { namespacedResource } from '../../kube/resource.js';
import { until } from '../processes/wait.js';

export interface StoryEvent extends KubeObject {
  type?: string;
  reason?: string;
  message?: string;
  count?: number;
  involvedObject?: { kind?: string; name?: string; uid?: string };
  source?: { component?: string };
}

export const EVENTS = namespacedResource<StoryEvent>('v1', 'events', 'Event');

/** Waits for an event about an object of this name whose message matches `words`. */
export function waitForEvent(
  client: Client,
  about: { namespace: string; name: string },
  reason: string,
  words = /^/,
): Promise<StoryEvent> {
  const fieldSelector = `involvedObject.name=${about.name},reason=${reason}`;
  return until(`an event ${reason} about ${about.name} that says ${words.source}`, async () => {
    const { items } = await client.list(EVENTS, { namespace: about.namespace, fieldSelector });
    return items.find(({ message = '' }) => words.test(message));
  });
}

/**
 * The events of Holdfast about a VM, in the order in which they first happened: that is the order of their names, which begin with the time in
 * milliseconds.
 */
export async function lifeOf(client: Client, vm: { namespace: string; name: string }): Promise<StoryEvent[]> {
  const fieldSelector = `involvedObject.kind=VirtualMachine,involvedObject.name=${vm.name}`;
  const { items } = await client.list(EVENTS, { namespace: vm.namespace, fieldSelector });
  return items
    .filter(({ source }) => source?.component?.startsWith('holdfast-'))
    .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
}
