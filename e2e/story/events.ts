import type { KubeObject } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import type { Resource } from '../../kube/resource.js';
import { until } from '../bed/wait.js';

export interface StoryEvent extends KubeObject {
  type?: string;
  reason?: string;
  message?: string;
  involvedObject?: { kind?: string; name?: string };
}

export const EVENTS: Resource<StoryEvent> = {
  group: '',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  namespaced: true,
};

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
