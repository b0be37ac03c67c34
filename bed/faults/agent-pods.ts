import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { objectKey } from '../../api/meta.js';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { Pod } from '../../api/pod.js';
import type { Bed } from '../bed.js';
import { nodeFolder } from '../network/open-pod-networks.js';
import type { BedWire } from '../node/bed-wire.js';
import { NETWORK_ATTACHMENT_DEFINITIONS, PODS } from '../../kube/resources.js';
import type { Story } from '../story/story.js';
import { until, untilValue } from '../processes/wait.js';
import { bareAddress } from '../../test/bare-address.js';

/** The interface of ordinary pods on their only secondary network. */
export const NET1 = 'net1';

/** Ordinary pods of a story, and the addresses of their interfaces. */
export class AgentPods {
  readonly #story: Story;
  readonly #wire: BedWire;

  constructor(story: Story, wire: BedWire) {
    this.#story = story;
    this.#wire = wire;
  }

  /** Waits until no pod of an earlier story has a sandbox: what its DEL does to the agent would count as done by this story. */
  async untilAlone(): Promise<void> {
    const sandboxes = this.#wire.networks.all();
    const left = async () => {
      if (sandboxes.size === 0) return [];
      const { items } = await this.#story.client.list(PODS);
      const names = new Map(items.map((pod) => [pod.metadata.uid, objectKey(pod)]));
      return [...sandboxes].map(([uid, { node }]) => `${names.get(uid) ?? uid} on ${node}`);
    };
    const isEmpty = (names: readonly string[]) => names.length === 0;
    await untilValue('sandboxes of earlier stories to be gone', left, isEmpty, { timeoutMs: 180_000 });
  }

  /** Creates a pod on a node. @param nad of its interface {@link NET1} */
  create(name: string, node: string, nad = 'blue'): Promise<Pod> {
    const { namespace, client } = this.#story;
    const spec = { nodeName: node, containers: [{ name: 'main', image: 'example.com/nothing' }] };
    const metadata = { name, namespace, annotations: { [NETWORKS_ANNOTATION]: nad } };
    return client.create(PODS, { metadata, spec });
  }

  /** Waits until the pod runs. @returns its addresses, without prefix lengths, sorted */
  async waitRunning(name: string, interfaceName = NET1): Promise<string[]> {
    const pod = await untilValue(
      `pod ${name} to run`,
      () => this.get(name),
      ({ status }) => status?.phase === 'Running',
      { timeoutMs: 60_000 },
    );
    return until(`pod ${name} to be on the wire`, () => this.waitForInterface(pod, interfaceName));
  }

  /** The addresses of an interface, without prefix lengths, sorted. */
  async waitForInterface(pod: Pod, interfaceName = NET1): Promise<string[]> {
    return (await this.#wire.addressesOf(pod, interfaceName)).map(bareAddress).sort();
  }

  get(name: string): Promise<Pod> {
    return this.#story.client.get(PODS, this.#story.ref(name));
  }

  /** @param byForce without waiting for the kubelet */
  async delete(name: string, byForce = false): Promise<void> {
    const options = byForce ? { gracePeriodSeconds: 0 } : {};
    await this.#story.client.delete(PODS, this.#story.ref(name), options);
  }

  async waitGone(name: string): Promise<void> {
    const find = () => this.#story.client.find(PODS, this.#story.ref(name));
    await until(`pod ${name} to be gone`, async () => (await find()) === undefined, { timeoutMs: 60_000 });
  }

  /** The config of a network, as a runtime hands it to a plugin. */
  async config(nad: string): Promise<Record<string, unknown>> {
    const { client } = this.#story;
    const found: NetworkAttachmentDefinition = await client.get(NETWORK_ATTACHMENT_DEFINITIONS, this.#story.ref(nad));
    return JSON.parse(found.spec?.config ?? '{}') as Record<string, unknown>;
  }
}

/** The files of pending deletes of a node's agent. */
export function pendingDeletesOn(bed: Bed, node: string): string[] {
  const folder = join(runDirOf(bed, node), 'deletions');
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
}

/** The folder with the socket of a node's agent. */
export function runDirOf(bed: Bed, node: string): string {
  return join(nodeFolder(bed, node), 'run-holdfast');
}
