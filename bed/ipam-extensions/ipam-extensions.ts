import type { Bed } from '../bed.js';
import {
  connectWebhook,
  createAccount,
  disconnectWebhook,
  removeAccount,
  WEBHOOK_CONFIGURATION,
} from './installation.js';
import { Program, whyNotProgram } from './program.js';
import { Replay } from './replay.js';

/** The program itself, or a replay of its recorded writes. */
export const VARIANTS = {
  'kubevirt/ipam-extensions': {
    start: (bed: Bed): Promise<Program | Replay> => Program.start(bed),
    whyNot: whyNotProgram,
  },
  'its recorded writes': {
    start: (bed: Bed): Promise<Program | Replay> => Replay.start(bed),
    whyNot: () => Promise.resolve(undefined),
  },
} as const;

export type Variant = (typeof VARIANTS)[keyof typeof VARIANTS];

/** kubevirt/ipam-extensions, installed on a bed. */
export class IpamExtensions {
  readonly #bed: Bed;
  readonly #configuration: string;
  #running: Program | Replay | undefined;

  private constructor(bed: Bed, configuration: string) {
    this.#bed = bed;
    this.#configuration = configuration;
  }

  /** @param configuration the name of its webhook's configuration, which decides the order of webhooks */
  static async install(bed: Bed, variant: Variant, configuration = WEBHOOK_CONFIGURATION): Promise<IpamExtensions> {
    const installed = new IpamExtensions(bed, configuration);
    try {
      await createAccount(bed);
      installed.#running = await variant.start(bed);
      await connectWebhook(bed, installed.#running.webhookUrl, configuration);
    } catch (error) {
      await installed.remove();
      throw error;
    }
    return installed;
  }

  /** The webhook's configuration goes first: launchers are refused while nothing serves it. */
  async remove(): Promise<void> {
    await disconnectWebhook(this.#bed, this.#configuration);
    await this.#running?.stop();
    await removeAccount(this.#bed);
  }
}
