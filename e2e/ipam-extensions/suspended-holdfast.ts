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
    await bed.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION);
    await Promise.all([bed.controller.stop(), bed.webhook.stop()]);
    return new SuspendedHoldfast(bed, configuration);
  }

  /** The webhook is not ready without its configuration. */
  async resume(): Promise<void> {
    const { controller, webhook, client } = this.#bed;
    const { resourceVersion: _version, uid: _uid, ...metadata } = this.#configuration.metadata;
    await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, { ...this.#configuration, metadata });
    await Promise.all([controller.start(), webhook.start()]);
  }
}
