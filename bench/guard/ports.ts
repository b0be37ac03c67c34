import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAddress } from '../../addressing/address/address.js';
import { guardRules } from '../../cni/agent/guard/claim-rules.js';
import { accept } from '../../cni/agent/guard/rule-set.js';
import { ensureModule } from '../../bed/build/binaries.js';
import { type PortAnswer, answerAdds } from '../../bed/network/guard/rule-agent.js';
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

/** What filters a port: nothing, one rule that accepts everything, or the rules of a claim. */
export type PortFilter = 'none' | 'one rule' | 'guard';

/** A call of the plugin for an interface of the pod. */
export interface PortCall {
  readonly verb: 'ADD' | 'DEL';
  readonly port: string;
  readonly filter: PortFilter;
}

const ANSWERS: Readonly<Record<PortFilter, PortAnswer>> = {
  none: { addresses: ADDRESSES },
  'one rule': {
    addresses: ADDRESSES,
    guard: { mode: 'Enforce', sets: [], chains: [{ name: 'port', rules: [accept()] }] },
  },
  guard: {
    addresses: ADDRESSES,
    guard: guardRules({
      mode: 'Enforce',
      addresses: ADDRESSES.map((address) => parseAddress(bareAddress(address))),
      ...{ allowed: { addresses: [], macs: [] }, isHeld: false, vlans: [] },
    }),
  },
};

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
    const agents = await Promise.all(
      Object.entries(ANSWERS).map(([filter, answer]) => answerAdds(join(folder, filter), () => answer)),
    );
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

  /** Removes interfaces, as the plugin bridge does before it calls DEL. */
  async remove(names: readonly string[]): Promise<void> {
    const lines = names.map((name) => `/usr/sbin/ip link del v-${name}`).join('\n');
    const { exitCode, stderr } = await this.wire.run(`node/${NODE}`, { command: '/bin/sh', args: ['-ec', lines] });
    if (exitCode !== 0) throw new Error(stderr);
  }

  /** Calls the plugin one after the other. @returns the runs in this order @throws {Error} if one fails */
  async call(calls: readonly PortCall[]): Promise<PluginRun[]> {
    const stdin = calls.map(({ verb, port, filter }, id) => {
      const env = {
        CNI_COMMAND: verb,
        CNI_CONTAINERID: `${POD}-${port}`,
        CNI_IFNAME: port,
        CNI_NETNS: this.#netns,
        HOLDFAST_SOCKET: join(this.#folder, filter, 'agent.sock'),
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
