import { describeValue, isRecord, asRecord } from '../../api/json.js';
import { type Address, parseAddressOrPrefix } from '../../addressing/address/address.js';
import { messageOf } from '../../kube/errors.js';
import { CniCode, CniError } from './cni-error.js';
import type { PodRef } from './node-pods.js';
import {
  type AddConfig,
  type JsonObject,
  invalidConfig,
  listAt,
  objectAt,
  parseConfig,
  parseRequestJson,
  readAddConfig,
  readStdinConfig,
} from './stdin-config.js';

/** The call of the runtime. A file of a pending delete has the same format. */
export interface PluginRequest {
  /** The `CNI_…` variables. */
  readonly env: Readonly<Record<string, string>>;
  /** The text from stdin. */
  readonly config: string;
  /** The version of the rules of guards that the plugin applies; absent: it knows none and ignores them. */
  readonly guard?: number;
}

/** The commands of the CNI protocol (CNI spec 1.1, section 2). */
export const CNI_COMMANDS = ['ADD', 'DEL', 'CHECK', 'GC', 'STATUS', 'VERSION'] as const;
type CniCommand = (typeof CNI_COMMANDS)[number];

/** Identifies one interface of one sandbox. */
export interface InterfaceRef {
  /** ID of the sandbox. It changes when the sandbox is recreated. */
  readonly containerId: string;
  /** Name of the interface inside the pod. */
  readonly interfaceName: string;
}

export interface AddRequest extends InterfaceRef, AddConfig {
  readonly command: 'ADD';
  readonly pod: PodRef;
  /** The path of the sandbox's network namespace, as the runtime sees it. */
  readonly netns: string;
  /** The plugin applies the rules of a guard. One that an earlier version of Holdfast installed ignores them. */
  readonly appliesGuards: boolean;
}

export interface DelRequest extends InterfaceRef {
  readonly command: 'DEL';
}

export interface CheckRequest extends InterfaceRef {
  readonly command: 'CHECK';
  readonly network: string;
  readonly pod: PodRef;
  /** The addresses of the interface according to the runtime. */
  readonly addresses: readonly Address[];
  /** Only the rules of a guard are checked, which the plugin does. */
  readonly isChained: boolean;
}

export interface GcRequest {
  readonly command: 'GC';
  readonly network: string;
  /** Keys of {@link sandboxInterfaceKey} that are still in use; undefined if the runtime sent no list, and for a chained plugin, which gives no addresses. */
  readonly valid: ReadonlySet<string> | undefined;
}

interface StatusRequest {
  readonly command: 'STATUS';
  /** Undefined for a chained plugin, which gives no addresses. */
  readonly network: string | undefined;
}

interface VersionRequest {
  readonly command: 'VERSION';
  /** The CNI version of the runtime. */
  readonly version: string;
}

export type CniRequest = AddRequest | DelRequest | CheckRequest | GcRequest | StatusRequest | VersionRequest;

export function sandboxInterfaceKey({ containerId, interfaceName }: InterfaceRef): string {
  return `${containerId} ${interfaceName}`;
}

/**
 * Reads a request of any verb and version. Only what the verb needs is validated, because a DEL must not fail with the error of its ADD.
 * @throws {CniError} 1, 4, 6 or 7
 */
export function readCniRequest(ask: PluginRequest): CniRequest {
  const environment = readEnvironment(ask.env);
  const { command, containerId, interfaceName } = environment;
  switch (command) {
    case 'ADD':
      return readAdd(environment, ask);
    case 'DEL':
      parseConfig(ask.config);
      return { command, containerId, interfaceName };
    case 'CHECK':
      return readCheck(environment, ask.config);
    case 'GC': {
      const { name, isChained, all } = readStdinConfig(command, ask.config);
      return { command, network: name, valid: isChained ? undefined : readValidAttachments(all) };
    }
    case 'STATUS': {
      const { name, isChained } = readStdinConfig(command, ask.config);
      return { command, network: isChained ? undefined : name };
    }
    case 'VERSION': {
      const { cniVersion } = parseConfig(ask.config);
      return { command, version: typeof cniVersion === 'string' && cniVersion !== '' ? cniVersion : '1.1.0' };
    }
  }
}

function readAdd(
  { containerId, interfaceName, netns, args }: CniEnvironment,
  { config, guard = 0 }: PluginRequest,
): AddRequest {
  const pod = readPod(args);
  const appliesGuards = guard >= 1;
  return { command: 'ADD', containerId, interfaceName, pod, netns, appliesGuards, ...readAddConfig(config, args) };
}

function readCheck({ containerId, interfaceName, args }: CniEnvironment, text: string): CheckRequest {
  const pod = readPod(args);
  const { name, isChained, all } = readStdinConfig('CHECK', text);
  const addresses = resultAddresses(all, interfaceName);
  return { command: 'CHECK', network: name, containerId, interfaceName, pod, addresses, isChained };
}

function readPod(args: ReadonlyMap<string, string>): PodRef {
  const [namespace, name, uid] = (['NAMESPACE', 'NAME', 'UID'] as const).map((key) => args.get(`K8S_POD_${key}`));
  if (namespace !== undefined && name !== undefined) return { namespace, name, ...(uid !== undefined && { uid }) };
  const absent = ['K8S_POD_NAMESPACE', 'K8S_POD_NAME'].filter((key) => !args.has(key));
  throw new CniError(
    CniCode.InvalidEnvironment,
    `CNI_ARGS: ${absent.join(' and ')} absent: Holdfast serves only Kubernetes pods, whose runtime sets them`,
  );
}

/** Returns the addresses of the interface in the result of its ADD, without those that belong to another one. */
function resultAddresses(config: JsonObject, interfaceName: string): Address[] {
  if (config.prevResult === undefined || config.prevResult === null) {
    throw invalidConfig('prevResult', 'it is absent: CHECK compares it with the leases');
  }
  const result = objectAt(config, 'prevResult');
  const interfaces = listAt(result, 'interfaces', 'prevResult.interfaces');
  return listAt(result, 'ips', 'prevResult.ips').flatMap((ip, index) => {
    const path = `prevResult.ips[${index}]`;
    if (!isRecord(ip)) throw invalidConfig(path, `${describeValue(ip)} is not an object`);
    const owner = typeof ip.interface === 'number' ? interfaces[ip.interface] : undefined;
    if (isRecord(owner) && owner.name !== interfaceName) return [];
    if (typeof ip.address !== 'string')
      throw invalidConfig(`${path}.address`, `${describeValue(ip.address)} is not an address`);
    try {
      return [parseAddressOrPrefix(ip.address).address];
    } catch (error) {
      throw invalidConfig(`${path}.address`, messageOf(error));
    }
  });
}

/**
 * Returns undefined without a key, because nothing may be collected then. libcni writes an empty list as null. Runtimes used the second key before
 * CNI 1.1 was final.
 */
function readValidAttachments(config: JsonObject): ReadonlySet<string> | undefined {
  const key = ['cni.dev/valid-attachments', 'cni.dev/attachments'].find((each) => config[each] !== undefined);
  if (key === undefined) return undefined;
  const keys = listAt(config, key).map((element, index) => {
    const { containerID: containerId, ifname: interfaceName } = asRecord(element);
    if (typeof containerId === 'string' && typeof interfaceName === 'string')
      return sandboxInterfaceKey({ containerId, interfaceName });
    throw invalidConfig(`${key}[${index}]`, 'it is not {"containerID": "…", "ifname": "…"}');
  });
  return new Set(keys);
}

/** Parses the JSON text. @throws {CniError} 6 */
export function readPluginRequest(text: string): PluginRequest {
  const value = parseRequestJson(text, 'the request to the agent');
  const { env, config, guard } = asRecord(value);
  if (!isRecord(env) || typeof config !== 'string') {
    throw new CniError(
      CniCode.Decode,
      `the request to the agent is ${describeValue(value)}, not {"env": {…}, "config": "…"}: the CNI plugin and the agent have different versions`,
    );
  }
  const variables = Object.entries(env).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return { env: Object.fromEntries(variables), config, ...(typeof guard === 'number' && { guard }) };
}

/** The validated variables of a request; `args` may be empty. */
interface CniEnvironment {
  readonly command: CniCommand;
  /** Empty if the command needs none. */
  readonly containerId: string;
  readonly interfaceName: string;
  readonly netns: string;
  /** The pairs of CNI_ARGS that Holdfast uses. Keys without a value are left out. */
  readonly args: ReadonlyMap<ArgsKey, string>;
}

type Variable = 'CNI_CONTAINERID' | 'CNI_NETNS' | 'CNI_IFNAME' | 'CNI_PATH';

const REQUIRED: Readonly<Record<CniCommand, readonly Variable[]>> = {
  ADD: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME'],
  DEL: ['CNI_CONTAINERID', 'CNI_IFNAME'],
  CHECK: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME'],
  GC: ['CNI_PATH'],
  STATUS: [],
  VERSION: [],
};

const CONTAINER_ID = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
/** The names that the kernel accepts. */
const INTERFACE_NAME = /^(?!\.{1,2}$)[^/:\s\0]{1,15}$/u;

/** Reads and validates the variables. @throws {CniError} 4, naming all variables that are absent or invalid */
function readEnvironment(env: Readonly<Record<string, string>>): CniEnvironment {
  const command = CNI_COMMANDS.find((each) => each === env.CNI_COMMAND);
  if (command === undefined) {
    throw new CniError(
      CniCode.InvalidEnvironment,
      `CNI_COMMAND is ${describeValue(env.CNI_COMMAND)}: it must be one of ${CNI_COMMANDS.join(', ')}`,
    );
  }
  const needsArgs = command === 'ADD' || command === 'CHECK';
  const { args, problem } = needsArgs ? readArgs(env.CNI_ARGS ?? '') : NO_ARGS;
  const problems = REQUIRED[command].flatMap((variable) => problemOf(variable, env[variable]) ?? []);
  if (problem !== undefined) problems.push(problem);
  if (problems.length > 0) throw new CniError(CniCode.InvalidEnvironment, problems.join('; '));
  const { CNI_CONTAINERID: containerId = '', CNI_IFNAME: interfaceName = '', CNI_NETNS: netns = '' } = env;
  return { command, containerId, interfaceName, netns, args };
}

function problemOf(variable: Variable, value = ''): string | undefined {
  if (value === '') return `${variable} is absent`;
  if (variable === 'CNI_CONTAINERID' && !CONTAINER_ID.test(value)) {
    return `CNI_CONTAINERID is ${describeValue(value)}: it must begin with a letter or digit and contain only letters, digits, "_", "." and "-"`;
  }
  if (variable === 'CNI_IFNAME' && !INTERFACE_NAME.test(value)) {
    return `CNI_IFNAME is ${describeValue(value)}: it must have 1 to 15 characters and no "/", ":" or white space`;
  }
  return undefined;
}

const ARGS_KEYS = ['K8S_POD_NAMESPACE', 'K8S_POD_NAME', 'K8S_POD_UID', 'IP', 'MAC'] as const;
/** A key of CNI_ARGS that Holdfast uses. */
type ArgsKey = (typeof ARGS_KEYS)[number];

const NO_ARGS: ReturnType<typeof readArgs> = { args: new Map() };

/**
 * Reads `K=V;K=V`, of which only the keys that Holdfast uses count. Multus repeats keys, which is allowed if the values are equal. Of the
 * others they may differ: Multus puts IgnoreUnknown=true before containerd's IgnoreUnknown=1.
 */
function readArgs(text: string): { args: ReadonlyMap<ArgsKey, string>; problem?: string } {
  const args = new Map<ArgsKey, string>();
  for (const pair of text.split(';')) {
    const equals = pair.indexOf('=');
    if (pair.trim() === '') continue;
    if (equals < 1) return { args, problem: `CNI_ARGS: ${describeValue(pair)} is not KEY=VALUE` };
    const key = ARGS_KEYS.find((each) => each === pair.slice(0, equals).trim());
    if (key === undefined) continue;
    const value = pair.slice(equals + 1);
    const known = args.get(key);
    if (known !== undefined && value !== '' && known !== value) {
      const problem = `CNI_ARGS: ${key} is both ${describeValue(known)} and ${describeValue(value)}: set it only once`;
      return { args, problem };
    }
    if (value !== '') args.set(key, value);
  }
  return { args };
}
