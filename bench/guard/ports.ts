import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAddress } from '../../addressing/address/address.js';
import { guardRules } from '../../cni/agent/guard/claim-rules.js';
import { ensureModule } from '../../bed/build/binaries.js';
import { answerAdds } from '../../bed/network/guard/rule-agent.js';
import { PLUGIN_FILE } from '../../bed/network/open-pod-networks.js';
import type { Wire } from '../../bed/network/wire.js';
import { bareAddress } from '../../test/bare-address.js';
import type { PluginRun } from '../cni/plugin-caller.js';

const run = promisify(execFile);
const PLUGIN_BUILD = join(import.meta.dirname, '../../cni/plugin/build.js');
const CALLER = join(import.meta.dirname, '..', 'cni', 'caller');
const NODE = 'guard-node';
const POD = 'guard-pod';
export const SEGMENT = 'guardbench';
export const ADDRESSES = ['10.81.0.5/16', 'fd00:81::5/64'] as const;

/** A call of the plugin for an interface of the pod, on whose network there is a guard or none. */
export interface PortCall {
  readonly verb: 'ADD' | 'DEL';
  readonly port: string;
  readonly isGuarded: boolean;
}

/** A node with a bridge, and a pod with ports of it, whose guards the real plugin applies. An agent stands for ours. */
export class GuardedPorts {
  readonly wire: Wire;
  readonly #folder: string;
  readonly #plugin: string;
  readonly #caller: string;
  readonly #netns: string;
  readonly #agents: readonly Server[];

  private constructor(of: {
    wire: Wire;
    folder: string;
    plugin: string;
    caller: string;
    netns: string;
    agents: Server[];
  }) {
    this.wire = of.wire;
    this.#folder = of.folder;
    this.#plugin = of.plugin;
    this.#caller = of.caller;
    this.#netns = of.netns;
    this.#agents = of.agents;
  }

  static async open(wire: Wire, folder: string, progress: (line: string) => void): Promise<GuardedPorts> {
    const dir = join(folder, 'node');
    await mkdir(dir);
    await wire.addNode({ name: NODE, dir, apiPort: 9 });
    await wire.join(NODE, SEGMENT);
    const netns = await wire.addPod(NODE, POD);
    await run(process.execPath, [PLUGIN_BUILD, folder]);
    const caller = join(await ensureModule(CALLER, progress), 'caller');
    const plain = () => ({ addresses: ADDRESSES });
    const guarded = () => ({ addresses: ADDRESSES, guard: rules() });
    const agents = [
      await answerAdds(join(folder, 'plain'), plain),
      await answerAdds(join(dir, 'run-holdfast'), guarded),
    ];
    return new GuardedPorts({ wire, folder, plugin: join(folder, PLUGIN_FILE), caller, netns, agents });
  }

  close(): void {
    for (const agent of this.#agents) agent.close();
  }

  /** Adds interfaces to the pod, as the plugin bridge does. */
  async add(names: readonly string[]): Promise<void> {
    const script = names.map((name) => {
      const mac = `02:81:${Buffer.from(name.padEnd(4, '_'))
        .toString('hex')
        .replaceAll(/(..)(?=.)/g, '$1:')}`;
      return `link add v-${name} master ${SEGMENT} up type veth peer name ${name} address ${mac} netns $0`;
    });
    const lines = `set -e\n${script.map((line) => `/usr/sbin/ip ${line}`).join('\n')}`;
    const { exitCode, stderr } = await this.wire.run(`node/${NODE}`, {
      command: '/bin/sh',
      args: ['-c', lines, this.#netns],
    });
    if (exitCode !== 0) throw new Error(stderr);
  }

  /** Calls the plugin one after the other. @returns the runs in this order @throws {Error} if one fails */
  async call(calls: readonly PortCall[]): Promise<PluginRun[]> {
    const stdin = calls.map(({ verb, port, isGuarded }, id) => {
      const env = {
        CNI_COMMAND: verb,
        CNI_CONTAINERID: `${POD}-${port}`,
        CNI_IFNAME: port,
        CNI_NETNS: this.#netns,
        HOLDFAST_SOCKET: isGuarded ? '/run/holdfast/agent.sock' : join(this.#folder, 'plain', 'agent.sock'),
      };
      return JSON.stringify({ id, env: Object.entries(env).map((entry) => entry.join('=')), config: '{}' });
    });
    const command = { command: this.#caller, args: ['-serial', this.#plugin], stdin: stdin.join('\n') };
    const { exitCode, stdout, stderr } = await this.wire.run(`node/${NODE}`, command);
    const runs = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as PluginRun);
    const failed = runs.find(({ exit }) => exit !== 0);
    if (exitCode !== 0 || failed) throw new Error(`${stderr} ${failed?.output ?? ''}`);
    return runs;
  }

  get location(): `pod/${string}` {
    return `pod/${POD}`;
  }
}

function rules(): object {
  const addresses = ADDRESSES.map((address) => parseAddress(bareAddress(address)));
  const allowed = { addresses: [], macs: [] };
  return guardRules({ mode: 'Enforce', addresses, allowed, isHeld: false, vlans: [] });
}
