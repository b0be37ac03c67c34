import { join } from 'node:path';
import type { AgentInterface } from '../node/vmi/guest-agent.js';
import { untilValue } from '../processes/wait.js';
import { executeOn, type QmpCommand } from './json-socket.js';

interface ReportedInterface {
  readonly name: string;
  readonly 'hardware-address'?: string;
  readonly 'ip-addresses'?: readonly { readonly 'ip-address': string; readonly prefix: number }[];
}

interface CommandStatus {
  readonly exited: boolean;
  readonly exitcode?: number;
  readonly 'out-data'?: string;
  readonly 'err-data'?: string;
}

/** A guest that QEMU runs in a launcher pod. */
export class Guest {
  /** With the sockets of QEMU and of the guest agent. */
  readonly #folder: string;

  /** @param folder the launcher's private volume */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** What the guest writes to its console, until kubelet removes it with the launcher. */
  get consoleFile(): string {
    return join(this.#folder, 'console');
  }

  /** The interfaces that the guest agent reports, but lo. @throws {Error} if it does not run yet */
  async interfaces(): Promise<AgentInterface[]> {
    const [found] = await this.#askAgent({ execute: 'guest-network-get-interfaces' }, 1_000);
    return (found as ReportedInterface[])
      .filter(({ name }) => name !== 'lo')
      .map((one) => ({
        name: one.name,
        mac: one['hardware-address'] ?? '',
        ips: (one['ip-addresses'] ?? []).map((address) => address['ip-address']),
      }));
  }

  /** Waits until an interface in the guest has an address, without its prefix length. */
  async waitAddress(name: string, address: string): Promise<void> {
    await untilValue(
      `${name} of the guest to have ${address}`,
      () => this.interfaces().catch(() => []),
      (found) => found.some((one) => one.name === name && one.ips.includes(address)),
      { timeoutMs: 90_000 },
    );
  }

  /** Runs a shell command in the guest. @returns its standard output @throws {Error} if it fails */
  async run(script: string): Promise<string> {
    const start = { path: '/bin/sh', arg: ['-c', script], 'capture-output': true };
    const [started] = await this.#askAgent({ execute: 'guest-exec', arguments: start });
    const { pid } = started as { pid: number };
    const { exitcode, ...output } = await untilValue(
      `"${script}" to end in the guest`,
      async () => (await this.#askAgent({ execute: 'guest-exec-status', arguments: { pid } }))[0] as CommandStatus,
      ({ exited }) => exited,
      { timeoutMs: 60_000 },
    );
    const [stdout, stderr] = [output['out-data'], output['err-data']].map((data = '') =>
      Buffer.from(data, 'base64').toString(),
    );
    if (exitcode !== 0) throw new Error(`"${script}" failed in the guest: ${stdout ?? ''}${stderr ?? ''}`);
    return stdout ?? '';
  }

  /** @returns the answer of QEMU @throws {Error} with its error */
  async askQemu(command: QmpCommand): Promise<unknown> {
    return (await executeOn(join(this.#folder, 'qmp'), [{ execute: 'qmp_capabilities' }, command]))[1];
  }

  #askAgent(command: QmpCommand, timeoutMs?: number): Promise<unknown[]> {
    return executeOn(join(this.#folder, 'agent'), [command], timeoutMs);
  }
}
