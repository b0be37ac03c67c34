import type { KubeObject } from '../../api/meta.js';
import { MUTATING_WEBHOOK_CONFIGURATIONS } from '../../kube/resources.js';
import type { BedWithHoldfast } from '../environment.js';

const CONFIGURATION = { name: 'holdfast-webhook' };

/** The part of Holdfast that kubevirt/ipam-extensions has too, stopped as if it were not installed. */
export class SuspendedHoldfast {
  readonly #bed: BedWithHoldfast;
  readonly #configuration: KubeObject;

  private constructor(bed: BedWithHoldfast, configuration: KubeObject) {
    this.#bed = bed;
    this.#configuration = configuration;
  }

  /** Removes the webhook's configuration first: launchers are refused while nothing serves it. */
  static async suspend(bed: BedWithHoldfast): Promise<SuspendedHoldfast> {
    const configuration = await bed.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION);
    const suspended = new SuspendedHoldfast(bed, configuration);
    try {
      await bed.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION);
      await suspended.#stop();
    } catch (error) {
      await suspended.resume();
      throw error;
    }
    return suspended;
  }

  /** The webhook is not ready without its configuration. */
  async resume(): Promise<void> {
    const { controller, webhook, client } = this.#bed;
    const { resourceVersion: _version, uid: _uid, ...metadata } = this.#configuration.metadata;
    if ((await client.find(MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)) === undefined)
      await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, { ...this.#configuration, metadata });
    await this.#stop(); // one of them may still run if suspend() failed
    await Promise.all([controller.start(), webhook.start()]);
  }

  async #stop(): Promise<void> {
    await Promise.all([this.#bed.controller.stop(), this.#bed.webhook.stop()]);
  }
}
