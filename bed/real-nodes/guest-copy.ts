import type { Clock } from '../../kube/clock.js';
import type { GuestCopy } from '../node/vmi/vmi-view.js';
import type { MigrationConfiguration } from '../node/vmi/virtual-machine-instance.js';
import { untilValue } from '../processes/wait.js';
import type { Guest } from './guest.js';

interface MigrationStatus {
  readonly status?: string;
  readonly 'error-desc'?: string;
}

const MEBIBYTE = 2 ** 20;
/** Of QEMU. */
const DEFAULT_BANDWIDTH = 128;
/** KubeVirt rounds up, and no guest of the bed has more. */
const MEMORY_GIB = 1;
const DEFAULT_SECONDS_PER_GIB = 150;
/** The state of QEMU's migration by what became of it. All others are active. */
const ENDED: Readonly<Record<string, GuestCopy['state']>> = {
  completed: 'completed',
  failed: 'failed',
  cancelled: 'failed',
  'postcopy-paused': 'failed',
};
/** Nobody listens at the socket of a QEMU that was killed, and kubelet removes it with the launcher. */
const GONE = new Set(['ECONNREFUSED', 'ENOENT']);

/** The copy of a guest to another QEMU, as virt-launcher makes it: live-migration-source.go of KubeVirt 1.8. */
export class QemuCopy {
  readonly #guest: Guest;
  readonly #configuration: MigrationConfiguration;
  readonly #clock: Clock;
  readonly #startedAt: number;
  #mode: GuestCopy['mode'] = 'PreCopy';

  private constructor(guest: Guest, configuration: MigrationConfiguration, clock: Clock) {
    this.#guest = guest;
    this.#configuration = configuration;
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  /** @param uri of the socket at which the target is reached, in the source's launcher */
  static async start(
    guest: Guest,
    uri: string,
    configuration: MigrationConfiguration,
    clock: Clock,
  ): Promise<QemuCopy> {
    await allowPostCopy(guest, configuration.allowPostCopy === true);
    const [, mebibytes] = /^(\d+)Mi$/.exec(configuration.bandwidthPerMigration ?? '') ?? [];
    const bandwidth = Number(mebibytes ?? DEFAULT_BANDWIDTH) * MEBIBYTE;
    await guest.askQemu({ execute: 'migrate-set-parameters', arguments: { 'max-bandwidth': bandwidth } });
    await guest.askQemu({ execute: 'migrate', arguments: { uri } });
    return new QemuCopy(guest, configuration, clock);
  }

  /** Also starts post-copy, if that is allowed and the copy takes too long. */
  async state(): Promise<GuestCopy> {
    const { status = '', 'error-desc': reason = status } = await this.#status();
    const state = ENDED[status] ?? 'active';
    if (state === 'active' && this.#mode === 'PreCopy' && this.#isLate()) {
      await this.#guest.askQemu({ execute: 'migrate-start-postcopy' });
      this.#mode = 'PostCopy';
    }
    return { state, reason, mode: this.#mode };
  }

  /** @throws {Error} if the guest has left */
  async cancel(): Promise<void> {
    if (ENDED[(await this.#status()).status ?? ''] === undefined)
      await this.#guest.askQemu({ execute: 'migrate_cancel' });
    const { status } = await untilValue(
      'the migration to be cancelled',
      () => this.#status(),
      (found) => ENDED[found.status ?? ''] !== undefined,
    );
    if (status === 'completed') throw new Error('the migration was completed before it could be cancelled');
  }

  #isLate(): boolean {
    const { allowPostCopy: isAllowed, completionTimeoutPerGiB = DEFAULT_SECONDS_PER_GIB } = this.#configuration;
    const elapsedMs = this.#clock.now() - this.#startedAt;
    return isAllowed === true && elapsedMs > completionTimeoutPerGiB * MEMORY_GIB * 1_000;
  }

  async #status(): Promise<MigrationStatus> {
    try {
      return (await this.#guest.askQemu({ execute: 'query-migrate' })) as MigrationStatus;
    } catch (error) {
      if (!GONE.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
      return { status: 'failed', 'error-desc': 'QEMU has ended' };
    }
  }
}

/** Both ends must agree before a migration starts. @throws {Error} if the host does not let QEMU handle page faults */
export async function allowPostCopy(guest: Guest, state: boolean): Promise<void> {
  const capabilities = [{ capability: 'postcopy-ram', state }];
  await guest.askQemu({ execute: 'migrate-set-capabilities', arguments: { capabilities } });
}
